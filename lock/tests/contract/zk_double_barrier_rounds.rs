//! Who is in a double barrier in ZooKeeper: who comes late, or for the next round, and what an old `ready` says.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    zk_double_barrier::{THREE, TWO, make, members},
    zk_recipes::SHORT,
    zk_wire::Wire,
    zookeeper::{LONG, ZooKeeper, connected, text},
};
use futures::future::try_join_all;
use oversell_lock::LockError;
use std::sync::Arc;
use tokio::time::timeout;
use zookeeper_client::{Acls, CreateMode};

pub(crate) async fn more_members_than_were_asked_for_are_let_in(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let three = barrier.enter(SOON).await;
    let all = [says("one", one)?, says("two", two)?, says("three", three)?];
    match barrier.leave(&all[0], SHORT).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("with two inside: {other:?}")),
    }
    let (two, three) = tokio::join!(barrier.leave(&all[1], SOON), barrier.leave(&all[2], SOON));
    says("two", two)?;
    says("three", three)?;
    let left = zookeeper.left(&name).await;
    ensure(left.is_empty(), || format!("left: {left:?}"))
}

/// All members of a round died, and what they left lets nobody in.
pub(crate) async fn an_old_ready_lets_nobody_in(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let client = connected(&process).await?;
    client
        .mkdir(&name, &CreateMode::Container.with_acls(Acls::anyone_all()))
        .await
        .map_err(text)?;
    make(&client, &format!("{name}/ready"), CreateMode::Persistent)
        .await
        .map_err(text)?;
    let barrier = process.client.double_barrier(&name, TWO);
    match barrier.enter(SHORT).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("alone: {other:?}")),
    }
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (says("one", one)?, says("two", two)?);
    let (one, two) = tokio::join!(barrier.leave(&one, SOON), barrier.leave(&two, SOON));
    says("one leaves", one)?;
    says("two leaves", two)
}

/// Two are in, and somebody took `ready` away, as a Java member does that leaves: who comes is let in beside them, and
/// asks a few questions for that, not thousands.
pub(crate) async fn who_comes_while_others_are_in_is_let_in_without_a_ready(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, wire) = (name(), Wire::to(zookeeper.server()).await);
    let (process, late) = (
        zookeeper.process().await,
        zookeeper.process_with(&wire.address(), LONG).await,
    );
    connected(&late).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (says("one", one)?, says("two", two)?);
    zookeeper
        .outsider()
        .await
        .delete(&format!("{name}/ready"), None)
        .await
        .map_err(text)?;
    let before = wire.requests();
    let entered = timeout(SOON * 2, late.client.double_barrier(&name, TWO).enter(SOON)).await;
    let three = says("three", entered.map_err(|_| "an enter had no end")?)?;
    let asked = wire.requests() - before;
    ensure(asked < 30, || format!("asked {asked} times"))?;
    let all = tokio::join!(
        barrier.leave(&one, SOON),
        barrier.leave(&two, SOON),
        barrier.leave(&three, SOON)
    );
    says("one leaves", all.0)?;
    says("two leaves", all.1)?;
    says("three leaves", all.2)
}

/// One that came late is in like the others: when those have gone it still lets the next one in, and those who leave wait
/// for it. It is only shown where its name is before theirs.
pub(crate) async fn a_late_member_is_in_like_the_first_ones(zookeeper: Arc<ZooKeeper>) -> Verdict {
    const TRIES: usize = 60;
    let process = zookeeper.process().await;
    connected(&process).await?;
    for _ in 0..TRIES {
        let name = name();
        let barrier = process.client.double_barrier(&name, THREE);
        let inside = try_join_all([0; 3].map(|_| barrier.enter(SOON))).await;
        let inside = says("the first three", inside)?;
        let late = says("the late one", barrier.enter(SOON).await)?;
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
                members(&zookeeper, &name).await == [late.clone()]
            })
            .await?;
            left.push(says("beside the late one", barrier.enter(SOON).await)?);
            ensure(leaving.iter().all(|left| !left.is_finished()), || {
                "left before the late one".into()
            })?;
        }
        says(
            "the late ones leave",
            try_join_all(left.iter().map(|member| barrier.leave(member, SOON))).await,
        )?;
        for left in leaving {
            says("leaves", left.await.map_err(text)?)?;
        }
        if shows {
            return Ok(());
        }
    }
    Err(format!(
        "the late one was never the first by name in {TRIES} tries"
    ))
}

/// Who waits for the next round is not inside: the last of this round leaves without it.
pub(crate) async fn who_waits_for_the_next_round_holds_up_nobody(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let client = connected(&process).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (says("one", one)?, says("two", two)?);
    // A member that has come and has not looked yet.
    let newcomer = format!("{name}/{}", uuid::Uuid::new_v4());
    make(&client, &newcomer, CreateMode::Ephemeral)
        .await
        .map_err(text)?;
    let (one, two) = tokio::join!(barrier.leave(&one, SOON), barrier.leave(&two, SOON));
    says("one leaves", one)?;
    says("two leaves", two)?;
    client.delete(&newcomer, None).await.map_err(text)?;
    Ok(())
}
