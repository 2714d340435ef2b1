//! Membership of a double barrier in ZooKeeper: members that come late, or for the next round, and what an old `ready` says.

use super::{
    support::*,
    zk_double_barrier::{THREE, TWO, enter_together, leave_together, members},
    zk_wire::Wire,
    zookeeper::*,
};
use zookeeper_client::CreateMode;

/// All members of a round died, and what they left lets nobody in.
#[apply(test!)]
async fn an_old_ready_lets_nobody_in(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    directory(&client, &name).await?;
    make(&client, &format!("{name}/ready"), CreateMode::Persistent).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    taken("alone", barrier.enter(SHORT).await)?;
    leave_together(&barrier, enter_together::<2>(&barrier).await?).await
}

/// Two are in, and somebody took `ready` away, as a Java member does that leaves: the next to come is let in beside them, and
/// asks a few questions for that, not thousands.
#[apply(test!)]
async fn a_member_that_comes_while_others_are_in_needs_no_ready(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let late = zookeeper.process_with(&wire.address(), LONG).await;
    let barrier = process.client.double_barrier(&name, TWO);
    let [one, two] = enter_together(&barrier).await?;
    zookeeper.delete(&format!("{name}/ready")).await?;
    let before = wire.requests();
    let entered = timeout(SOON * 2, late.client.double_barrier(&name, TWO).enter(SOON)).await;
    let three = entered.context("an enter had no end")?.context("three")?;
    let asked = wire.requests() - before;
    ensure!(asked < 30, "asked {asked} times");
    leave_together(&barrier, [one, two, three]).await
}

/// One that came late is in like the others: when those have gone it still lets the next one in, and those that leave wait
/// for it. It is only shown where its name is before theirs.
#[apply(test!)]
async fn a_late_member_is_in_like_the_first_ones(zookeeper: &ZooKeeper) -> Result {
    const TRIES: usize = 60;
    let process = zookeeper.client().await;
    for _ in 0..TRIES {
        let name = name();
        let barrier = process.client.double_barrier(&name, THREE);
        let inside = enter_together::<3>(&barrier).await?;
        let late = barrier.enter(SOON).await.context("the late one")?;
        let shows = inside.iter().all(|member| late < *member);
        let leaving = inside.map(|member| {
            let barrier = barrier.clone();
            tokio::spawn(async move { barrier.leave(&member, SOON).await })
        });
        let mut left = vec![late.clone()];
        if shows {
            let is_alone = async || members(zookeeper, &name).await == left;
            until("the three have gone", is_alone).await?;
            left.push(barrier.enter(SOON).await.context("beside the late one")?);
            let early = leaving.iter().any(|leaving| leaving.is_finished());
            ensure!(!early, "left before the late one");
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
async fn a_waiter_for_the_next_round_holds_up_nobody(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    let inside = enter_together::<2>(&barrier).await?;
    // A member that has come and has not looked yet.
    let newcomer = format!("{name}/{}", uuid::Uuid::new_v4());
    make(&client, &newcomer, CreateMode::Ephemeral).await?;
    leave_together(&barrier, inside).await?;
    Ok(client.delete(&newcomer, None).await?)
}
