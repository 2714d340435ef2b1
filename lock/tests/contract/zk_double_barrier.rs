//! What the double barrier in ZooKeeper promises, and the twins that break it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    proxy::Proxy,
    zk_wire::{DELETE, LIST, MULTI, Wire},
    zookeeper::{LONG, ZooKeeper, connected, text},
};
use futures::{FutureExt, future::BoxFuture};
use oversell_lock::{
    LockError,
    zk::{ZkClient, ZkDoubleBarrier},
};
use parking_lot::Mutex;
use std::{num::NonZeroU32, sync::Arc, task::Poll, time::Duration};
use tokio::{task::yield_now, time::timeout};
use zookeeper_client::{Acls, Client, CreateMode, Error};

const SHORT: Duration = Duration::from_millis(200);
pub(crate) const TWO: NonZeroU32 = NonZeroU32::new(2).expect("two");
pub(crate) const THREE: NonZeroU32 = NonZeroU32::new(3).expect("three");
const FIVE: NonZeroU32 = NonZeroU32::new(5).expect("five");

pub(crate) async fn make(client: &Client, path: &str, mode: CreateMode) -> Result<(), Error> {
    client
        .create(path, &[], &mode.with_acls(Acls::anyone_all()))
        .await
        .map(|_| ())
}

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

async fn ready(zookeeper: &ZooKeeper, name: &str) -> bool {
    zookeeper
        .left(name)
        .await
        .iter()
        .any(|member| member == "ready")
}

/// Says what went before what: `log` has the first of it when the last comes.
fn none_before(log: &Mutex<Vec<&'static str>>, first: &str, then: &str) -> Verdict {
    let log = log.lock();
    let (before, after) = (
        log.iter().rposition(|e| *e == first),
        log.iter().position(|e| *e == then),
    );
    ensure(before < after || after.is_none(), || {
        format!("{then} too early: {log:?}")
    })
}

/// Five in two processes enter and leave one barrier, twice; the fifth comes, and goes, when the others are seen to
/// wait.
async fn five(zookeeper: &ZooKeeper, enter: Enter, leave: Leave) -> Verdict {
    let name = &name();
    let processes = [zookeeper.process().await, zookeeper.process().await];
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
        until("four are there", || async {
            members(zookeeper, name).await.len() == 4
        })
        .await?;
        for process in &processes {
            // The server answers a session in order: whatever they heard of by then they have heard.
            connected(process)
                .await?
                .check_stat(name)
                .await
                .map_err(text)?;
        }
        ensure(!log.lock().contains(&"enters"), || "one entered".into())?;
        ensure(!ready(zookeeper, name).await, || "ready with four".into())?;
        coming.push(come(4));
        let mut inside = Vec::new();
        for member in coming {
            inside.push(says("enter", member.await.map_err(text)?)?);
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
        let last = inside.pop().ok_or("five are in")?;
        let first = inside.iter().min().cloned().ok_or("five are in")?;
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
            says("leave", member.await.map_err(text)?)?;
        }
        none_before(&log, "goes", "has left")?;
        let left = zookeeper.left(name).await;
        ensure(left.is_empty(), || format!("left: {left:?}"))?;
    }
    Ok(())
}

/// `<path>/<uuid>`, ephemeral, and `<path>/ready`, which is not.
async fn layout(zookeeper: &ZooKeeper, name: &str, inside: &[String]) -> Verdict {
    let outsider = zookeeper.outsider().await;
    let (mut there, mut told) = (zookeeper.left(name).await, inside.to_vec());
    told.push("ready".into());
    there.sort();
    told.sort();
    ensure(there == told, || {
        format!("told {told:?}, there are {there:?}")
    })?;
    for node in there {
        let stat = outsider
            .check_stat(&format!("{name}/{node}"))
            .await
            .map_err(text)?
            .ok_or("it has gone")?;
        let (uuid, ephemeral) = (
            uuid::Uuid::try_parse(&node).is_ok(),
            stat.ephemeral_owner != 0,
        );
        ensure(uuid == ephemeral && uuid == (node != "ready"), || {
            format!("{node}: {stat:?}")
        })?;
    }
    Ok(())
}

pub(crate) async fn none_of_five_enters_early_and_none_leaves_early(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    five(&zookeeper, enter, leave).await
}

/// The twin, as Curator with a wait limit (its issue 1290), takes any notification for the opening.
pub(crate) async fn a_member_that_does_not_count_again_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let twin: Enter = |barrier, client| {
        async move {
            while client.session().is_err() {
                yield_now().await;
            }
            let (client, own) = (client.session()?, uuid::Uuid::new_v4().to_string());
            let broken = |e: Error| LockError::Unavailable {
                server: "zookeeper",
                reason: e.into(),
            };
            let directory = CreateMode::Container.with_acls(Acls::anyone_all());
            client
                .mkdir(barrier.name(), &directory)
                .await
                .map_err(broken)?;
            let (_, watch) = client
                .list_and_watch_children(barrier.name())
                .await
                .map_err(broken)?;
            make(
                &client,
                &format!("{}/{own}", barrier.name()),
                CreateMode::Ephemeral,
            )
            .await
            .map_err(broken)?;
            // Here the honest one counts. What this one hears of may be itself.
            watch.changed().await;
            Ok(own)
        }
        .boxed()
    };
    match five(&zookeeper, twin, leave).await {
        Err(broken) if broken.contains("enters too early") || broken == "one entered" => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// The twin deletes its node and goes.
pub(crate) async fn a_member_that_leaves_at_once_is_caught(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let twin: Leave = |barrier, client, member| {
        async move {
            let path = format!("{}/{member}", barrier.name());
            let broken = |e: Error| LockError::Unavailable {
                server: "zookeeper",
                reason: e.into(),
            };
            client.session()?.delete(&path, None).await.map_err(broken)
        }
        .boxed()
    };
    match five(&zookeeper, enter, twin).await {
        Err(broken) if broken.contains("has left too early") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

async fn leaves_no_member(
    zookeeper: &ZooKeeper,
    name: &str,
    entered: Result<String, LockError>,
) -> Verdict {
    match entered {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("alone: {other:?}")),
    }
    let left = zookeeper.left(name).await;
    ensure(left.is_empty(), || format!("left: {left:?}"))
}

pub(crate) async fn an_enter_that_times_out_leaves_no_member(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let barrier = process.client.double_barrier(&name, TWO);
    for wait in [Duration::ZERO, SHORT, SHORT] {
        leaves_no_member(&zookeeper, &name, barrier.enter(wait).await).await?;
    }
    Ok(())
}

/// The twin, as Curator, leaves it there: the next one is let in on its account.
pub(crate) async fn a_member_that_stays_after_its_wait_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let client = connected(&process).await?;
    client
        .mkdir(&name, &CreateMode::Container.with_acls(Acls::anyone_all()))
        .await
        .map_err(text)?;
    make(
        &client,
        &format!("{name}/{}", uuid::Uuid::new_v4()),
        CreateMode::Ephemeral,
    )
    .await
    .map_err(text)?;
    let entered = process.client.double_barrier(&name, TWO).enter(SHORT).await;
    match leaves_no_member(&zookeeper, &name, entered).await {
        Err(broken) if broken.contains("alone: Ok") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

pub(crate) async fn a_dropped_enter_leaves_no_member(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
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
        until("no member is left", || async {
            members(&zookeeper, &name).await.is_empty()
        })
        .await?;
    }
    let waiter = tokio::spawn(async move { barrier.enter(SOON).await });
    until("one waits", || async {
        members(&zookeeper, &name).await.len() == 1
    })
    .await?;
    waiter.abort();
    until("nobody is left", || async {
        zookeeper.left(&name).await.is_empty()
    })
    .await
}

pub(crate) async fn a_dropped_leave_leaves(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let barrier = process.client.double_barrier(&name, TWO);
    let (one, two) = tokio::join!(barrier.enter(SOON), barrier.enter(SOON));
    let (one, two) = (says("one", one)?, says("two", two)?);
    // The first by name waits with its node in place.
    let (first, last) = if one < two { (one, two) } else { (two, one) };
    match barrier.leave(&first, SHORT).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("with the other inside: {other:?}")),
    }
    match barrier.leave(&first, SHORT).await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("a second time: {other:?}")),
    }
    let mut leave = barrier.leave(&last, SOON).boxed();
    ensure(futures::poll!(&mut leave).is_pending(), || {
        "it has left".into()
    })?;
    drop(leave);
    // Nobody asks for it a second time: what was dropped does it.
    until("nobody is left", || async {
        members(&zookeeper, &name).await.is_empty()
    })
    .await
}

pub(crate) async fn a_member_that_dies_inside_does_not_keep_the_others(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, way) = (name(), Proxy::to(zookeeper.server()));
    let (doomed, process) = (
        zookeeper.process_at(&way.address()).await,
        zookeeper.process().await,
    );
    let (theirs, barrier) = (
        doomed.client.double_barrier(&name, THREE),
        process.client.double_barrier(&name, THREE),
    );
    let (dies, one, two) =
        tokio::join!(theirs.enter(SOON), barrier.enter(SOON), barrier.enter(SOON));
    let (dies, one, two) = (
        says("the doomed", dies)?,
        says("one", one)?,
        says("two", two)?,
    );
    way.cut().await;
    let (one, two) = tokio::join!(barrier.leave(&one, SOON), barrier.leave(&two, SOON));
    says("one leaves", one)?;
    says("two leaves", two)?;
    match barrier.leave(&dies, SHORT).await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("the dead leaves: {other:?}")),
    }
    let left = members(&zookeeper, &name).await;
    ensure(left.is_empty(), || format!("left: {left:?}"))
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
async fn both_or_none(zookeeper: &ZooKeeper, enter: EnterIn) -> Verdict {
    for gives_up in [GivesUp::BeforeTheOtherOpens, GivesUp::Late, GivesUp::Never] {
        let name = name();
        let [early_way, wire] = [
            Wire::to(zookeeper.server()).await,
            Wire::to(zookeeper.server()).await,
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
        session.check_stat(&name).await.map_err(text)?;
        wire.close_to(MULTI);
        early_way.close_to(DELETE);
        let second = tokio::spawn(enter(late.0, late.1, wait * 2));
        timeout(SOON, wire.holds())
            .await
            .map_err(|_| "the second never opened")?;
        if gives_up != GivesUp::Never {
            timeout(SOON, early_way.holds())
                .await
                .map_err(|_| "the first never gave up")?;
        }
        let (first, second) = if gives_up == GivesUp::BeforeTheOtherOpens {
            early_way.open();
            let first = first.await.map_err(text)?;
            wire.open();
            (first, second.await.map_err(text)?)
        } else {
            wire.open();
            let second = second.await.map_err(text)?;
            early_way.open();
            (first.await.map_err(text)?, second)
        };
        match (gives_up, first, second) {
            (GivesUp::Never | GivesUp::Late, Ok(one), Ok(two)) => {
                let (one, two) = tokio::join!(early.0.leave(&one, SOON), early.0.leave(&two, SOON));
                says("one leaves", one)?;
                says("two leaves", two)?;
            }
            (
                GivesUp::BeforeTheOtherOpens,
                Err(LockError::Taken { .. }),
                Err(LockError::Taken { .. }),
            ) => {}
            other => return Err(format!("not the same for both: {other:?}")),
        }
    }
    Ok(())
}

type EnterIn =
    fn(ZkDoubleBarrier, ZkClient, Duration) -> BoxFuture<'static, Result<String, LockError>>;

pub(crate) async fn who_gives_up_was_not_counted(zookeeper: Arc<ZooKeeper>) -> Verdict {
    both_or_none(&zookeeper, |barrier, _, wait| {
        async move { barrier.enter(wait).await }.boxed()
    })
    .await
}

/// The twin opens without a look at those whom it counted.
pub(crate) async fn a_member_that_counts_and_then_opens_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let verdict = both_or_none(&zookeeper, |barrier, client, wait| {
        async move {
            let broken = |e: Error| LockError::Unavailable {
                server: "zookeeper",
                reason: e.into(),
            };
            let (client, name) = (client.session()?, barrier.name());
            let (uuid, ready) = (uuid::Uuid::new_v4().to_string(), format!("{name}/ready"));
            let own = format!("{name}/{uuid}");
            client
                .mkdir(name, &CreateMode::Container.with_acls(Acls::anyone_all()))
                .await
                .map_err(broken)?;
            let (_, watch) = client.check_and_watch_stat(&ready).await.map_err(broken)?;
            make(&client, &own, CreateMode::Ephemeral)
                .await
                .map_err(broken)?;
            if client.list_children(name).await.map_err(broken)?.len() >= 2 {
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
            Err(LockError::Taken {
                name: name.to_owned(),
                waited: wait,
            })
        }
        .boxed()
    });
    match verdict.await {
        Err(broken) if broken.contains("not the same for both") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// The member is made and its answer lost.
pub(crate) async fn an_unanswered_enter_leaves_no_member(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, mute) = (name(), Mute::to(zookeeper.server()).await);
    let process = zookeeper.process_at(&mute.address()).await;
    let barrier = process.client.double_barrier(&name, TWO);
    // The directory is made: the next one is a single request.
    leaves_no_member(&zookeeper, &name, barrier.enter(Duration::ZERO).await).await?;
    mute.mute();
    let entered = tokio::spawn(async move { barrier.enter(SOON).await });
    until("the member is there", || async {
        members(&zookeeper, &name).await.len() == 1
    })
    .await?;
    match entered.await.map_err(text)? {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("without an answer: {other:?}")),
    }
    mute.heal().await;
    until("no member is left", || async {
        members(&zookeeper, &name).await.is_empty()
    })
    .await
}
