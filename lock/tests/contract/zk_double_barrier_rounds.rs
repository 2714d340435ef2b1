//! Membership of a double barrier in ZooKeeper: members that come late, or for the next round, and what an old `ready` says.

use super::{
    family::Server,
    support::*,
    zk_double_barrier::{THREE, TWO, members},
    zk_wire::Wire,
    zookeeper::{LONG, ZooKeeper, connected, directory, make},
};
use futures::future::try_join_all;
use tokio::time::timeout;
use zookeeper_client::CreateMode;

#[apply(test!)]
async fn more_members_than_were_asked_for_are_let_in(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let three = barrier.enter(SOON).await;
    let all = [one?, two?, three?];
    taken("with two inside", barrier.leave(&all[0], SHORT).await)?;
    let (two, three) = tokio::join!(barrier.leave(&all[1], SOON), barrier.leave(&all[2], SOON));
    two?;
    three?;
    let left = zookeeper.left(&name).await;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// All members of a round died, and what they left lets nobody in.
#[apply(test!)]
async fn an_old_ready_lets_nobody_in(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    directory(&client, &name).await?;
    make(&client, &format!("{name}/ready"), CreateMode::Persistent).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    taken("alone", barrier.enter(SHORT).await)?;
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (one?, two?);
    let (one, two) = tokio::join!(barrier.leave(&one, SOON), barrier.leave(&two, SOON));
    one?;
    Ok(two?)
}

/// Two are in, and somebody took `ready` away, as a Java member does that leaves: the next to come is let in beside them, and
/// asks a few questions for that, not thousands.
#[apply(test!)]
async fn a_member_that_comes_while_others_are_in_needs_no_ready(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, wire) = (name(), Wire::to(zookeeper.address()).await);
    let (process, late) = (
        zookeeper.client().await,
        zookeeper.process_with(&wire.address(), LONG).await,
    );
    connected(&late).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (one?, two?);
    zookeeper.delete(&format!("{name}/ready")).await?;
    let before = wire.requests();
    let entered = timeout(SOON * 2, late.client.double_barrier(&name, TWO).enter(SOON)).await;
    let three = entered.context("an enter had no end")?.context("three")?;
    let asked = wire.requests() - before;
    ensure!(asked < 30, "asked {asked} times");
    let all = tokio::join!(
        barrier.leave(&one, SOON),
        barrier.leave(&two, SOON),
        barrier.leave(&three, SOON)
    );
    all.0?;
    all.1?;
    Ok(all.2?)
}

/// One that came late is in like the others: when those have gone it still lets the next one in, and those that leave wait
/// for it. It is only shown where its name is before theirs.
#[apply(test!)]
async fn a_late_member_is_in_like_the_first_ones(zookeeper: &ZooKeeper) -> Result<()> {
    const TRIES: usize = 60;
    let process = zookeeper.client().await;
    connected(&process).await?;
    for _ in 0..TRIES {
        let name = name();
        let barrier = process.client.double_barrier(&name, THREE);
        let inside = try_join_all([0; 3].map(|_| barrier.enter(SOON))).await;
        let inside = inside.context("the first three")?;
        let late = barrier.enter(SOON).await.context("the late one")?;
        let shows = inside.iter().all(|member| late < *member);
        let leaving: Vec<_> = inside
            .into_iter()
            .map(|member| {
                let barrier = barrier.clone();
                tokio::spawn(async move { barrier.leave(&member, SOON).await })
            })
            .collect();
        let mut left = vec![late.clone()];
        if shows {
            until("the three have gone", || async {
                members(zookeeper, &name).await == [late.clone()]
            })
            .await?;
            left.push(barrier.enter(SOON).await.context("beside the late one")?);
            ensure!(
                leaving.iter().all(|left| !left.is_finished()),
                "left before the late one"
            );
        }
        try_join_all(left.iter().map(|member| barrier.leave(member, SOON))).await?;
        for left in leaving {
            left.await?.context("leaves")?;
        }
        if shows {
            return Ok(());
        }
    }
    bail!("the late one was never the first by name in {TRIES} tries")
}

/// A waiter for the next round is not inside: the last of this round leaves without it.
#[apply(test!)]
async fn a_waiter_for_the_next_round_holds_up_nobody(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (one?, two?);
    // A member that has come and has not looked yet.
    let newcomer = format!("{name}/{}", uuid::Uuid::new_v4());
    make(&client, &newcomer, CreateMode::Ephemeral).await?;
    let (one, two) = tokio::join!(barrier.leave(&one, SOON), barrier.leave(&two, SOON));
    one?;
    two?;
    client.delete(&newcomer, None).await?;
    Ok(())
}
