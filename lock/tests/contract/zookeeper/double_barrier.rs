//! What the double barrier in ZooKeeper promises, and the twins that break it.

use crate::{
    support::*,
    zookeeper::wire::{DELETE, LIST, MULTI, Wire},
    zookeeper::*,
};
use futures::{FutureExt, future::BoxFuture};
use oversell_lock::zk::{ZkClient, ZkDoubleBarrier};
use std::num::NonZeroU32;
use zookeeper_client::{Acls, CreateMode};

const SHORT: Duration = Duration::from_millis(200);
pub(crate) const TWO: NonZeroU32 = NonZeroU32::new(2).expect("two");
pub(crate) const THREE: NonZeroU32 = NonZeroU32::new(3).expect("three");

type Enter = fn(ZkDoubleBarrier, ZkClient, Duration) -> BoxFuture<'static, Answer<String>>;
pub(crate) type Leave = fn(ZkDoubleBarrier, ZkClient, String) -> BoxFuture<'static, Answer>;

const ENTER: Enter = |barrier, _, wait| async move { barrier.enter(wait).await }.boxed();
pub(crate) const LEAVE: Leave = |barrier, _, member| async move { barrier.leave(&member, SOON).await }.boxed();

pub(crate) async fn enter_together<const N: usize>(barrier: &ZkDoubleBarrier) -> Result<[String; N]> {
    let inside = try_join_all([(); N].map(|()| barrier.enter(FOR_EVER))).await?;
    inside.try_into().ok().context("all enter")
}

pub(crate) async fn leave_together<const N: usize>(barrier: &ZkDoubleBarrier, members: [String; N]) -> Result {
    let leave = |member| barrier.leave(member, FOR_EVER);
    try_join_all(members.iter().map(|member| leave(member))).await?;
    Ok(())
}

pub(crate) async fn members(zookeeper: &ZooKeeper, name: &str) -> Vec<String> {
    let mut members = zookeeper.left(name).await;
    members.retain(|member| member != "ready");
    members
}

async fn until_members(zookeeper: &ZooKeeper, name: &str, n: usize) -> Result {
    let are = async || members(zookeeper, name).await.len() == n;
    until(&format!("{n} members are there"), are).await
}

/// `<path>/<uuid>` is ephemeral, `<path>/ready` is not.
async fn layout(zookeeper: &ZooKeeper, name: &str, inside: &[String]) -> Result {
    let outsider = zookeeper.outsider().await;
    let (mut there, mut wanted) = (zookeeper.left(name).await, inside.to_vec());
    wanted.push("ready".into());
    there.sort();
    wanted.sort();
    ensure_equal("what is there", &there, &wanted)?;
    for node in there {
        let stat = outsider.check_stat(&format!("{name}/{node}")).await?;
        let ephemeral = stat.context("it has gone")?.ephemeral_owner != 0;
        let uuid = uuid::Uuid::try_parse(&node).is_ok();
        ensure_equal(&node, (uuid, ephemeral), (node != "ready", node != "ready"))?;
    }
    Ok(())
}

#[apply(test!)]
async fn members_are_nodes_as_in_curator(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let barrier = process.client.double_barrier(&name, TWO);
    let inside = enter_together::<2>(&barrier).await?;
    layout(zookeeper, &name, &inside).await?;
    leave_together(&barrier, inside).await?;
    ensure_none(zookeeper.left(&name).await)
}

/// Creates a member's node without counting: the start of each twin.
async fn joins(client: &ZkClient, name: &str) -> Answer<String> {
    let (session, own) = (client.session()?, uuid::Uuid::new_v4().to_string());
    directory(&session, name).await.map_err(broken)?;
    let made = make(&session, &format!("{name}/{own}"), CreateMode::Ephemeral).await;
    made.map_err(broken).map(|()| own)
}

#[apply(test!)]
async fn a_dropped_leave_leaves(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let barrier = process.client.double_barrier(&name, TWO);
    let mut inside = enter_together::<2>(&barrier).await?;
    // The first member by name waits with its node in place.
    inside.sort();
    let [first, last] = inside;
    ensure_timed_out("with the other inside", barrier.leave(&first, SHORT).await)?;
    ensure_lost("a second time", barrier.leave(&first, SHORT).await)?;
    drop_after(0, barrier.leave(&last, SOON)).await;
    // The dropped future itself removes the node.
    until_members(zookeeper, &name, 0).await
}

#[apply(test!)]
async fn a_member_that_dies_inside_does_not_keep_the_others(zookeeper: &ZooKeeper) -> Result {
    let (name, process, doomed) = (name(), zookeeper.client().await, zookeeper.brief_session().await);
    let barrier = process.client.double_barrier(&name, THREE);
    let theirs = doomed.client.double_barrier(&name, THREE);
    let (dies, others) = tokio::join!(theirs.enter(SOON), enter_together::<2>(&barrier));
    let (dies, others) = (dies?, others?);
    doomed.way.cut();
    leave_together(&barrier, others).await?;
    ensure_lost("the dead leaves", barrier.leave(&dies, SHORT).await)?;
    ensure_none(members(zookeeper, &name).await)
}

/// The moment at which the first of two gives up.
#[derive(Debug, Clone, Copy, PartialEq)]
enum GivesUp {
    Never,
    /// The other has counted it, but not yet opened.
    BeforeTheOtherOpens,
    /// Its deletion is sent just before the other opens, and arrives just after.
    Late,
}

/// Whenever the first gives up, both are in or neither is.
async fn both_or_none(zookeeper: &ZooKeeper, enter: Enter) -> Result {
    for gives_up in [GivesUp::BeforeTheOtherOpens, GivesUp::Late, GivesUp::Never] {
        let name = name();
        let early_way = Wire::to(zookeeper.address()).await;
        let wire = Wire::to(zookeeper.address()).await;
        let early = zookeeper.process_with(&early_way.address(), LONG_SESSION).await;
        let late = zookeeper.process_with(&wire.address(), LONG_SESSION).await;
        let wait = match gives_up {
            GivesUp::Never => SOON,
            _ => Duration::from_secs(2),
        };
        let barrier = early.client.double_barrier(&name, TWO);
        let session = connected(&early).await?;
        let first = tokio::spawn(enter(barrier.clone(), early.client.clone(), wait));
        let looks = async || early_way.asked(LIST) > 0;
        until("the first has looked", looks).await?;
        // Answers come in order, so it has seen itself alone.
        session.check_stat(&name).await?;
        wire.close_to(MULTI);
        early_way.close_to(DELETE);
        let theirs = late.client.double_barrier(&name, TWO);
        let second = tokio::spawn(enter(theirs, late.client.clone(), wait * 2));
        wire.holds().await?;
        if gives_up != GivesUp::Never {
            early_way.holds().await.context("the first never gave up")?;
        }
        let (first, second) = if gives_up == GivesUp::BeforeTheOtherOpens {
            early_way.open();
            let first = first.await?;
            wire.open();
            (first, second.await?)
        } else {
            wire.open();
            let second = second.await?;
            early_way.open();
            (first.await?, second)
        };
        match (first, second) {
            (Ok(one), Ok(two)) if gives_up != GivesUp::BeforeTheOtherOpens => {
                leave_together(&barrier, [one, two]).await?;
            }
            (Err(LockError::Timeout { .. }), Err(LockError::Timeout { .. })) if gives_up == GivesUp::BeforeTheOtherOpens => {}
            other => bail!("not the same for both, {gives_up:?}: {other:?}"),
        }
    }
    Ok(())
}

#[apply(test!)]
async fn a_member_that_gives_up_was_not_counted(zookeeper: &ZooKeeper) -> Result {
    both_or_none(zookeeper, ENTER).await
}

/// The twin opens without checking the members that it counted.
#[apply(test!)]
async fn a_member_that_counts_and_then_opens_is_caught(zookeeper: &ZooKeeper) -> Result {
    let twin: Enter = |barrier, client, wait| {
        async move {
            let (session, name) = (client.session()?, barrier.name());
            let ready = format!("{name}/ready");
            directory(&session, name).await.map_err(broken)?;
            let watched = session.check_and_watch_stat(&ready).await;
            let (_, watch) = watched.map_err(broken)?;
            let own = joins(&client, name).await?;
            let members = session.list_children(name).await.map_err(broken)?;
            if members.len() >= 2 {
                // The real barrier marks all counted members in the same transaction.
                let mut open = session.new_multi_writer();
                let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
                open.add_create(&ready, &[], &persistent).map_err(broken)?;
                open.commit().await.map_err(|e| broken(e.into()))?;
                return Ok(own);
            }
            if timeout(wait, watch.changed()).await.is_ok() {
                return Ok(own);
            }
            let deleted = session.delete(&format!("{name}/{own}"), None).await;
            deleted.map_err(broken)?;
            Err(wait_over_error(name, wait))
        }
        .boxed()
    };
    caught(both_or_none(zookeeper, twin).await, "not the same for both")
}
