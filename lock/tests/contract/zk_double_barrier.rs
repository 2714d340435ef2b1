//! What the double barrier in ZooKeeper promises, and the twins that break it.

use super::{
    family::Server,
    mute::Mute,
    support::*,
    zk_wire::{DELETE, LIST, MULTI, Wire},
    zookeeper::{LONG, ZooKeeper, broken, connected, directory, make},
};
use futures::{FutureExt, future::BoxFuture};
use oversell::lab::Proxy;
use oversell_lock::{
    LockError,
    zk::{ZkClient, ZkDoubleBarrier},
};
use parking_lot::Mutex;
use std::{num::NonZeroU32, sync::Arc, task::Poll, time::Duration};
use tokio::{task::yield_now, time::timeout};
use zookeeper_client::{Acls, CreateMode};

const SHORT: Duration = Duration::from_millis(200);
pub(crate) const TWO: NonZeroU32 = NonZeroU32::new(2).expect("two");
pub(crate) const THREE: NonZeroU32 = NonZeroU32::new(3).expect("three");
const FIVE: NonZeroU32 = NonZeroU32::new(5).expect("five");

type Enter = fn(ZkDoubleBarrier, ZkClient) -> BoxFuture<'static, Result<String, LockError>>;
type Leave = fn(ZkDoubleBarrier, ZkClient, String) -> BoxFuture<'static, Result<(), LockError>>;

fn enter(barrier: ZkDoubleBarrier, _: ZkClient) -> BoxFuture<'static, Result<String, LockError>> {
    async move { barrier.enter(SOON).await }.boxed()
}

fn leave(
    barrier: ZkDoubleBarrier,
    _: ZkClient,
    member: String,
) -> BoxFuture<'static, Result<(), LockError>> {
    async move { barrier.leave(&member, SOON).await }.boxed()
}

pub(crate) async fn members(zookeeper: &ZooKeeper, name: &str) -> Vec<String> {
    let mut members = zookeeper.left(name).await;
    members.retain(|member| member != "ready");
    members
}

async fn until_members(zookeeper: &ZooKeeper, name: &str, n: usize) -> Result<()> {
    until(&format!("{n} members are there"), || async {
        members(zookeeper, name).await.len() == n
    })
    .await
}

async fn ready(zookeeper: &ZooKeeper, name: &str) -> bool {
    zookeeper
        .left(name)
        .await
        .iter()
        .any(|member| member == "ready")
}

/// Says what went before what: `log` has the first of it when the last comes.
fn none_before(log: &Mutex<Vec<&'static str>>, first: &str, then: &str) -> Result<()> {
    let log = log.lock();
    let (before, after) = (
        log.iter().rposition(|e| *e == first),
        log.iter().position(|e| *e == then),
    );
    ensure!(
        before < after || after.is_none(),
        "{then} too early: {log:?}"
    );
    Ok(())
}

/// Five in two processes enter and leave one barrier, twice; the fifth comes, and goes, when the others are seen to
/// wait.
async fn five(zookeeper: &ZooKeeper, enter: Enter, leave: Leave) -> Result<()> {
    let name = &name();
    let processes = [zookeeper.client().await, zookeeper.client().await];
    let client = |n: usize| processes[n % 2].client.clone();
    for _ in 0..2 {
        let log = Arc::new(Mutex::new(Vec::new()));
        let come = |n: usize| {
            let (log, client, barrier) =
                (log.clone(), client(n), client(n).double_barrier(name, FIVE));
            tokio::spawn(async move {
                log.lock().push("comes");
                let entered = enter(barrier, client).await;
                log.lock().push("enters");
                entered
            })
        };
        let mut coming: Vec<_> = (0..4).map(come).collect();
        until_members(zookeeper, name, 4).await?;
        for process in &processes {
            // The server answers a session in order: whatever they heard of by then they have heard.
            connected(process).await?.check_stat(name).await?;
        }
        ensure!(!log.lock().contains(&"enters"), "one entered");
        ensure!(!ready(zookeeper, name).await, "ready with four");
        coming.push(come(4));
        let mut inside = Vec::new();
        for member in coming {
            inside.push(member.await??);
        }
        none_before(&log, "comes", "enters")?;
        layout(zookeeper, name, &inside).await?;

        let go = |n: usize, member: String| {
            // On another client than the one that entered.
            let (log, client, barrier) = (
                log.clone(),
                client(n + 1),
                client(n + 1).double_barrier(name, FIVE),
            );
            tokio::spawn(async move {
                log.lock().push("goes");
                let left = leave(barrier, client, member).await;
                log.lock().push("has left");
                left
            })
        };
        let last = inside.pop().context("five are in")?;
        let first = inside.iter().min().cloned().context("five are in")?;
        let mut going: Vec<_> = inside
            .into_iter()
            .enumerate()
            .map(|(n, member)| go(n, member))
            .collect();
        let waiting = || async {
            let here = members(zookeeper, name).await;
            here.iter()
                .all(|member| *member == last || *member == first)
        };
        until("four wait to leave", waiting).await?;
        going.push(go(4, last.clone()));
        for member in going {
            member.await??;
        }
        none_before(&log, "goes", "has left")?;
        let left = zookeeper.left(name).await;
        ensure!(left.is_empty(), "left: {left:?}");
    }
    Ok(())
}

/// `<path>/<uuid>`, ephemeral, and `<path>/ready`, which is not.
async fn layout(zookeeper: &ZooKeeper, name: &str, inside: &[String]) -> Result<()> {
    let outsider = zookeeper.outsider().await;
    let (mut there, mut told) = (zookeeper.left(name).await, inside.to_vec());
    told.push("ready".into());
    there.sort();
    told.sort();
    ensure!(there == told, "told {told:?}, there are {there:?}");
    for node in there {
        let stat = outsider
            .check_stat(&format!("{name}/{node}"))
            .await?
            .context("it has gone")?;
        let (uuid, ephemeral) = (
            uuid::Uuid::try_parse(&node).is_ok(),
            stat.ephemeral_owner != 0,
        );
        ensure!(
            uuid == ephemeral && uuid == (node != "ready"),
            "{node}: {stat:?}"
        );
    }
    Ok(())
}

#[apply(test!)]
async fn none_of_five_enters_early_and_none_leaves_early(zookeeper: &ZooKeeper) -> Result<()> {
    five(zookeeper, enter, leave).await
}

/// The twin, as Curator with a wait limit (its issue 1290), takes any notification for the opening.
#[apply(test!)]
async fn a_member_that_does_not_count_again_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let twin: Enter = |barrier, client| {
        async move {
            while client.session().is_err() {
                yield_now().await;
            }
            let (client, own) = (client.session()?, uuid::Uuid::new_v4().to_string());
            let name = barrier.name();
            directory(&client, name).await.map_err(broken)?;
            let watched = client.list_and_watch_children(name).await;
            let (_, watch) = watched.map_err(broken)?;
            let member = format!("{name}/{own}");
            let made = make(&client, &member, CreateMode::Ephemeral).await;
            made.map_err(broken)?;
            // Here the honest one counts. What this one hears of may be itself.
            watch.changed().await;
            Ok(own)
        }
        .boxed()
    };
    // It is seen early or late.
    let verdict = five(zookeeper, twin, leave).await;
    caught(verdict, "enter")
}

/// The twin deletes its node and goes.
#[apply(test!)]
async fn a_member_that_leaves_at_once_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let twin: Leave = |barrier, client, member| {
        async move {
            let path = format!("{}/{member}", barrier.name());
            client.session()?.delete(&path, None).await.map_err(broken)
        }
        .boxed()
    };
    caught(five(zookeeper, enter, twin).await, "has left too early")
}

async fn leaves_no_member(
    zookeeper: &ZooKeeper,
    name: &str,
    entered: Result<String, LockError>,
) -> Result<()> {
    taken("alone", entered)?;
    let left = zookeeper.left(name).await;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

#[apply(test!)]
async fn an_enter_that_times_out_leaves_no_member(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let barrier = process.client.double_barrier(&name, TWO);
    for wait in [Duration::ZERO, SHORT, SHORT] {
        leaves_no_member(zookeeper, &name, barrier.enter(wait).await).await?;
    }
    Ok(())
}

/// The twin, as Curator, leaves it there: the next one is let in on its account.
#[apply(test!)]
async fn a_member_that_stays_after_its_wait_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    directory(&client, &name).await?;
    make(
        &client,
        &format!("{name}/{}", uuid::Uuid::new_v4()),
        CreateMode::Ephemeral,
    )
    .await?;
    let entered = process.client.double_barrier(&name, TWO).enter(SHORT).await;
    caught(
        leaves_no_member(zookeeper, &name, entered).await,
        "alone: Ok",
    )
}

#[apply(test!)]
async fn a_dropped_enter_leaves_no_member(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    connected(&process).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    for wake_ups in 0..8 {
        let mut left = wake_ups;
        let mut enter = barrier.enter(SOON).boxed();
        // Dropped at its first, second, ... wake-up; the last ones find it waiting, where nothing wakes it.
        let dropped = std::future::poll_fn(|context| match enter.poll_unpin(context) {
            Poll::Pending if left > 0 => {
                left -= 1;
                Poll::Pending
            }
            _ => Poll::Ready(()),
        });
        timeout(SHORT, dropped).await.ok();
        drop(enter);
        // Where the next one finds it, they are two.
        until_members(zookeeper, &name, 0).await?;
    }
    let waiter = tokio::spawn(async move { barrier.enter(SOON).await });
    until_members(zookeeper, &name, 1).await?;
    waiter.abort();
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_dropped_leave_leaves(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (one?, two?);
    // The first by name waits with its node in place.
    let (first, last) = if one < two { (one, two) } else { (two, one) };
    taken("with the other inside", barrier.leave(&first, SHORT).await)?;
    lost("a second time", barrier.leave(&first, SHORT).await)?;
    let mut leave = barrier.leave(&last, SOON).boxed();
    ensure!(futures::poll!(&mut leave).is_pending(), "it has left");
    drop(leave);
    // Nobody asks for it a second time: what was dropped does it.
    until_members(zookeeper, &name, 0).await
}

#[apply(test!)]
async fn a_member_that_dies_inside_does_not_keep_the_others(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, way) = (name(), Proxy::to(zookeeper.address())?);
    let (doomed, process) = (
        zookeeper.client_at(&way.address()).await,
        zookeeper.client().await,
    );
    let (theirs, barrier) = (
        doomed.client.double_barrier(&name, THREE),
        process.client.double_barrier(&name, THREE),
    );
    let (dies, one, two) =
        tokio::join!(theirs.enter(SOON), barrier.enter(SOON), barrier.enter(SOON));
    let (dies, one, two) = (dies?, one?, two?);
    way.cut();
    let (one, two) = tokio::join!(barrier.leave(&one, SOON), barrier.leave(&two, SOON));
    one?;
    two?;
    lost("the dead leaves", barrier.leave(&dies, SHORT).await)?;
    let left = members(zookeeper, &name).await;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// When the first of two gives up.
#[derive(Debug, Clone, Copy, PartialEq)]
enum GivesUp {
    Never,
    /// The other has counted it, and has not opened yet.
    BeforeTheOtherOpens,
    /// It asks to be taken away just before the other opens, and its request comes just after.
    Late,
}

/// Whenever the first gives up, both are in or none is.
async fn both_or_none(zookeeper: &ZooKeeper, enter: EnterIn) -> Result<()> {
    for gives_up in [GivesUp::BeforeTheOtherOpens, GivesUp::Late, GivesUp::Never] {
        let name = name();
        let [early_way, wire] = [
            Wire::to(zookeeper.address()).await,
            Wire::to(zookeeper.address()).await,
        ];
        let processes = [
            zookeeper.process_with(&early_way.address(), LONG).await,
            zookeeper.process_with(&wire.address(), LONG).await,
        ];
        let wait = if gives_up == GivesUp::Never {
            SOON
        } else {
            Duration::from_secs(2)
        };
        let [early, late] = processes.each_ref().map(|process| {
            let client = process.client.clone();
            (client.double_barrier(&name, TWO), client)
        });
        let session = connected(&processes[0]).await?;
        connected(&processes[1]).await?;
        let first = tokio::spawn(enter(early.0.clone(), early.1, wait));
        until("the first has looked", || async {
            early_way.asked(LIST) > 0
        })
        .await?;
        // Answers come in order: it has seen itself alone.
        session.check_stat(&name).await?;
        wire.close_to(MULTI);
        early_way.close_to(DELETE);
        let second = tokio::spawn(enter(late.0, late.1, wait * 2));
        timeout(SOON, wire.holds()).await?;
        if gives_up != GivesUp::Never {
            timeout(SOON, early_way.holds())
                .await
                .context("the first never gave up")?;
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
        match (gives_up, first, second) {
            (GivesUp::Never | GivesUp::Late, Ok(one), Ok(two)) => {
                let (one, two) = tokio::join!(early.0.leave(&one, SOON), early.0.leave(&two, SOON));
                one?;
                two?;
            }
            (
                GivesUp::BeforeTheOtherOpens,
                Err(LockError::Taken { .. }),
                Err(LockError::Taken { .. }),
            ) => {}
            other => bail!("not the same for both: {other:?}"),
        }
    }
    Ok(())
}

type EnterIn =
    fn(ZkDoubleBarrier, ZkClient, Duration) -> BoxFuture<'static, Result<String, LockError>>;

#[apply(test!)]
async fn a_member_that_gives_up_was_not_counted(zookeeper: &ZooKeeper) -> Result<()> {
    both_or_none(zookeeper, |barrier, _, wait| {
        async move { barrier.enter(wait).await }.boxed()
    })
    .await
}

/// The twin opens without a look at those whom it counted.
#[apply(test!)]
async fn a_member_that_counts_and_then_opens_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let verdict = both_or_none(zookeeper, |barrier, client, wait| {
        async move {
            let (client, name) = (client.session()?, barrier.name());
            let (uuid, ready) = (uuid::Uuid::new_v4().to_string(), format!("{name}/ready"));
            let own = format!("{name}/{uuid}");
            directory(&client, name).await.map_err(broken)?;
            let watched = client.check_and_watch_stat(&ready).await;
            let (_, watch) = watched.map_err(broken)?;
            let made = make(&client, &own, CreateMode::Ephemeral).await;
            made.map_err(broken)?;
            let members = client.list_children(name).await.map_err(broken)?;
            if members.len() >= 2 {
                // Here the honest one marks all whom it counts, in the same transaction.
                let mut open = client.new_multi_writer();
                let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
                open.add_create(&ready, &[], &persistent).map_err(broken)?;
                open.commit().await.map_err(|e| broken(e.into()))?;
                return Ok(uuid);
            }
            if timeout(wait, watch.changed()).await.is_ok() {
                return Ok(uuid);
            }
            client.delete(&own, None).await.map_err(broken)?;
            let name = name.to_owned();
            Err(LockError::Taken { name, waited: wait })
        }
        .boxed()
    });
    caught(verdict.await, "not the same for both")
}

/// The member is made and its answer lost.
#[apply(test!)]
async fn an_unanswered_enter_leaves_no_member(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let process = zookeeper.client_at(&mute.address()).await;
    let barrier = process.client.double_barrier(&name, TWO);
    // The directory is made: the next one is a single request.
    leaves_no_member(zookeeper, &name, barrier.enter(Duration::ZERO).await).await?;
    mute.mute();
    let entered = tokio::spawn(async move { barrier.enter(SOON).await });
    until_members(zookeeper, &name, 1).await?;
    unavailable("without an answer", entered.await?)?;
    mute.heal();
    until_members(zookeeper, &name, 0).await
}
