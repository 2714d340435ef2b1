//! What the shared numbers in ZooKeeper promise, and the twins that break it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    proxy::Proxy,
    zookeeper::{LONG, Member, ZooKeeper, connected, text},
};
use futures::{FutureExt, future::BoxFuture};
use oversell_lock::{
    Lock, LockError,
    zk::{Outcome, Versioned, ZkAtomicLong, ZkClient},
};
use std::sync::Arc;
use tokio::{sync::watch, task::JoinSet, time::timeout};

/// Each of the two clients counts in four tasks, a hundred times each; how often that was done, as the tasks know it.
async fn eight_times_a_hundred(
    zookeeper: &ZooKeeper,
    name: &str,
    count: fn(ZkClient, String) -> BoxFuture<'static, Result<bool, LockError>>,
) -> Result<usize, String> {
    let processes = [zookeeper.process().await, zookeeper.process().await];
    connected(&processes[0]).await?;
    connected(&processes[1]).await?;
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let (client, name) = (processes[n % 2].client.clone(), name.to_owned());
        tasks.spawn(async move {
            let mut told = 0;
            for _ in 0..100 {
                told += usize::from(says("count", count(client.clone(), name.clone()).await)?);
            }
            Ok::<_, String>(told)
        });
    }
    let mut told = 0;
    for task in tasks.join_all().await {
        told += task?;
    }
    Ok(told)
}

/// What the node holds, and its version.
async fn held(zookeeper: &ZooKeeper, name: &str) -> Result<(Vec<u8>, i32), String> {
    let (bytes, stat) = zookeeper
        .outsider()
        .await
        .get_data(name)
        .await
        .map_err(text)?;
    ensure(stat.ephemeral_owner == 0, || {
        "it goes with its session".into()
    })?;
    Ok((bytes, stat.version))
}

// --- shared count -------------------------------------------------------------------------------------------------

pub(crate) async fn a_shared_count_is_four_bytes(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let count = process.client.shared_count(&name, 0x0102_0304);
    let first = says("get", count.get().await)?;
    ensure(
        first
            == Versioned {
                value: 0x0102_0304,
                version: 0,
            },
        || format!("{first:?}"),
    )?;
    ensure(
        held(&zookeeper, &name).await? == (vec![1, 2, 3, 4], 0),
        || "not Curator's bytes".into(),
    )?;
    let set = says("set", count.set(-2).await)?;
    ensure(
        set == Versioned {
            value: -2,
            version: 1,
        },
        || format!("{set:?}"),
    )?;
    ensure(
        held(&zookeeper, &name).await? == (vec![255, 255, 255, 254], 1),
        || "not Curator's bytes".into(),
    )?;
    let other = says(
        "get",
        zookeeper
            .process()
            .await
            .client
            .shared_count(&name, 5)
            .get()
            .await,
    )?;
    ensure(other == set, || format!("another seed: {other:?}"))?;
    zookeeper
        .outsider()
        .await
        .set_data(&name, b"host", None)
        .await
        .map_err(text)?;
    let host = says("get", count.get().await)?;
    ensure(host.value == i32::from_be_bytes(*b"host"), || {
        format!("{host:?}")
    })?;
    zookeeper
        .outsider()
        .await
        .set_data(&name, b"127.0.0.1", None)
        .await
        .map_err(text)?;
    match count.get().await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("nine bytes: {other:?}")),
    }
    let unread = process.client.shared_count(&super::family::name(), 3);
    let set = says("set", unread.set(4).await)?;
    ensure(
        set.value == 4 && held(&zookeeper, unread.name()).await?.0 == [0, 0, 0, 4],
        || format!("{set:?}"),
    )
}

pub(crate) async fn an_old_version_is_refused(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, one, two) = (name(), zookeeper.process().await, zookeeper.process().await);
    let (one, two) = (
        one.client.shared_count(&name, 7),
        two.client.shared_count(&name, 7),
    );
    let seen = says("get", one.get().await)?;
    let set = says("try", two.try_set(seen, 8).await)?;
    let now = Versioned {
        value: 8,
        version: seen.version + 1,
    };
    ensure(set == Ok(now), || format!("the first: {set:?}"))?;
    let refused = says("try", one.try_set(seen, 9).await)?;
    ensure(refused == Err(now), || format!("the second: {refused:?}"))?;
    let set = says("try", one.try_set(now, 9).await)?;
    ensure(set.is_ok_and(|set| set.value == 9), || {
        format!("the third: {set:?}")
    })
}

/// Counts 800 and finds what is there.
async fn the_shared_count_is_exact(
    zookeeper: &ZooKeeper,
    count: fn(ZkClient, String) -> BoxFuture<'static, Result<bool, LockError>>,
) -> Verdict {
    let name = name();
    let process = zookeeper.process().await;
    says("seed", process.client.shared_count(&name, 0).get().await)?;
    let told = eight_times_a_hundred(zookeeper, &name, count).await?;
    let there = says("get", process.client.shared_count(&name, 0).get().await)?.value;
    ensure((told, there) == (800, 800), || {
        format!("counted {told}, there are {there}")
    })
}

pub(crate) async fn a_count_with_versions_is_exact(zookeeper: Arc<ZooKeeper>) -> Verdict {
    the_shared_count_is_exact(&zookeeper, |client, name| {
        async move {
            let count = client.shared_count(&name, 0);
            let mut seen = count.get().await?;
            while let Err(now) = count.try_set(seen, seen.value + 1).await? {
                seen = now;
            }
            Ok(true)
        }
        .boxed()
    })
    .await
}

/// The twin reads and sets, and asks for no version.
pub(crate) async fn a_count_without_versions_is_caught(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let verdict = the_shared_count_is_exact(&zookeeper, |client, name| {
        async move {
            let count = client.shared_count(&name, 0);
            let seen = count.get().await?;
            count.set(seen.value + 1).await.map(|_| true)
        }
        .boxed()
    });
    match verdict.await {
        Err(broken) if broken.contains("counted 800, there are") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

async fn hears(listener: &mut watch::Receiver<Versioned>, value: i32) -> Verdict {
    let heard = timeout(SOON, listener.wait_for(|seen| seen.value == value)).await;
    heard
        .map_err(|_| format!("{value} was never heard of"))?
        .map(|_| ())
        .map_err(text)
}

pub(crate) async fn a_listener_hears_of_others_through_cuts_and_sessions(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, other, way) = (
        name(),
        zookeeper.process().await,
        Proxy::to(zookeeper.server()),
    );
    let process = zookeeper.process_with(&way.address(), LONG).await;
    let setter = other.client.shared_count(&name, 0);
    let mut listener = says(
        "listen",
        process.client.shared_count(&name, 0).listen().await,
    )?;
    ensure(listener.borrow().value == 0, || "not the seed".into())?;
    says("set", setter.set(1).await)?;
    hears(&mut listener, 1).await?;
    way.cut().await;
    says("set", setter.set(2).await)?;
    way.mend();
    hears(&mut listener, 2).await?;
    let session = connected(&process).await?.session_id();
    zookeeper.take_away(&process, &name).await;
    says("set", setter.set(3).await)?;
    hears(&mut listener, 3).await?;
    let next = connected(&process).await?.session_id();
    ensure(session != next, || {
        "the session is the same: the test shows nothing".into()
    })?;
    zookeeper
        .outsider()
        .await
        .delete(&name, None)
        .await
        .map_err(text)?;
    hears(&mut listener, 0).await?;
    process.client.close().await;
    let ended = async { while listener.changed().await.is_ok() {} };
    timeout(SOON, ended)
        .await
        .map_err(|_| "the listener of a closed client goes on".into())
}

type Change = fn(ZkClient, String) -> BoxFuture<'static, Result<(), LockError>>;

/// A change whose answer is lost with its connection: what its caller is told, and the process with its way, connected
/// again. The node is there. A change that reads first has read it by then.
async fn unanswered(
    zookeeper: &ZooKeeper,
    name: &str,
    change: Change,
    reads_first: bool,
) -> Result<(Member, Mute, Result<(), LockError>), String> {
    let mute = Mute::to(zookeeper.server()).await;
    let process = zookeeper.process_with(&mute.address(), LONG).await;
    let session = connected(&process).await?;
    let (_, before) = held(zookeeper, name).await?;
    let mut change = change(process.client.clone(), name.to_owned());
    if reads_first {
        ensure(futures::poll!(&mut change).is_pending(), || {
            "it did not read".into()
        })?;
        // The server answers a session in order: what was read has come back.
        session.check_stat(name).await.map_err(text)?;
    }
    mute.mute();
    let change = tokio::spawn(change);
    until("it is carried out", || async {
        held(zookeeper, name)
            .await
            .is_ok_and(|(_, now)| now > before)
    })
    .await?;
    ensure(!change.is_finished(), || "it was answered".into())?;
    mute.cut().await;
    // The client may hear of the loss after whoever has asked: what is asked before that would be lost, too.
    until("the loss is known", || async {
        process.client.session().is_err()
    })
    .await?;
    mute.mend();
    let told = change.await.map_err(text)?;
    connected(&process).await?;
    Ok((process, mute, told))
}

fn unknown(told: Result<(), LockError>) -> Verdict {
    match told {
        Err(LockError::Unavailable { reason, .. }) if reason.to_string().contains("not known") => {
            Ok(())
        }
        other => Err(format!("without an answer: {other:?}")),
    }
}

pub(crate) async fn a_set_without_an_answer_is_unknown_and_not_repeated(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let changes: [Change; 2] = [
        |client, name| {
            async move { client.shared_count(&name, 7).set(8).await.map(|_| ()) }.boxed()
        },
        |client, name| {
            let seen = Versioned {
                value: 7,
                version: 0,
            };
            async move {
                client
                    .shared_count(&name, 7)
                    .try_set(seen, 8)
                    .await
                    .map(|_| ())
            }
            .boxed()
        },
    ];
    for change in changes {
        let name = name();
        says(
            "seed",
            zookeeper
                .process()
                .await
                .client
                .shared_count(&name, 7)
                .get()
                .await,
        )?;
        let (process, _way, told) = unanswered(&zookeeper, &name, change, false).await?;
        unknown(told)?;
        // The server answers a session in order, so nothing comes after this that was asked before.
        let now = says("get", process.client.shared_count(&name, 7).get().await)?;
        ensure(
            now == Versioned {
                value: 8,
                version: 1,
            },
            || format!("set once, and is {now:?}"),
        )?;
    }
    Ok(())
}

// --- atomic long --------------------------------------------------------------------------------------------------

fn came_to(
    outcome: Result<Outcome, LockError>,
    succeeded: bool,
    before: i64,
    after: i64,
) -> Verdict {
    let outcome = says("a change", outcome)?;
    let expected = Outcome {
        succeeded,
        before,
        after,
        promoted: outcome.promoted,
    };
    ensure(outcome == expected, || format!("came to {outcome:?}"))
}

pub(crate) async fn an_atomic_long_is_eight_bytes(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let long = process.client.atomic_long(&name);
    ensure(says("get", long.get().await)? == 0, || {
        "not 0 at first".into()
    })?;
    ensure(
        zookeeper
            .outsider()
            .await
            .check_stat(&name)
            .await
            .map_err(text)?
            .is_none(),
        || "get made a node".into(),
    )?;
    came_to(long.compare_and_set(0, 1).await, false, 0, 0)?;
    came_to(long.increment().await, true, 0, 1)?;
    ensure(
        held(&zookeeper, &name).await? == (vec![0, 0, 0, 0, 0, 0, 0, 1], 0),
        || "not Curator's bytes".into(),
    )?;
    came_to(long.add(10).await, true, 1, 11)?;
    came_to(long.subtract(13).await, true, 11, -2)?;
    ensure(
        held(&zookeeper, &name).await? == (vec![255, 255, 255, 255, 255, 255, 255, 254], 2),
        || "minus two".into(),
    )?;
    came_to(long.decrement().await, true, -2, -3)?;
    came_to(long.compare_and_set(5, 6).await, false, -3, -3)?;
    came_to(long.compare_and_set(-3, 6).await, true, -3, 6)?;
    came_to(long.try_set(i64::MAX).await, true, 6, i64::MAX)?;
    came_to(long.increment().await, true, i64::MAX, i64::MIN)?;
    says("force", long.force_set(9).await)?;
    ensure(says("get", long.get().await)? == 9, || "not forced".into())?;
    ensure(!says("initialize", long.initialize(1).await)?, || {
        "initialized twice".into()
    })?;
    zookeeper
        .outsider()
        .await
        .set_data(&name, &[], None)
        .await
        .map_err(text)?;
    came_to(long.increment().await, true, 0, 1)?;
    zookeeper
        .outsider()
        .await
        .set_data(&name, &[0; 4], None)
        .await
        .map_err(text)?;
    match long.increment().await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("four bytes: {other:?}")),
    }
    let fresh = process.client.atomic_long(&super::family::name());
    ensure(says("initialize", fresh.initialize(3).await)?, || {
        "not initialized".into()
    })?;
    let forced = process.client.atomic_long(&super::family::name());
    says("force", forced.force_set(4).await)?;
    ensure(
        (
            says("get", fresh.get().await)?,
            says("get", forced.get().await)?,
        ) == (3, 4),
        || "not set".into(),
    )?;
    let locks = zookeeper.left(long.lock_name()).await;
    ensure(locks.is_empty(), || format!("left: {locks:?}"))
}

async fn the_atomic_long_is_exact(
    zookeeper: &ZooKeeper,
    count: fn(ZkClient, String) -> BoxFuture<'static, Result<bool, LockError>>,
) -> Result<usize, String> {
    let name = name();
    let promoted = eight_times_a_hundred(zookeeper, &name, count).await?;
    let process = zookeeper.process().await;
    let long = process.client.atomic_long(&name);
    let there = says("get", long.get().await)?;
    ensure(there == 800, || format!("counted 800, there are {there}"))?;
    until("no contender is left", || async {
        zookeeper.left(long.lock_name()).await.is_empty()
    })
    .await?;
    Ok(promoted)
}

fn increment(long: ZkAtomicLong) -> BoxFuture<'static, Result<bool, LockError>> {
    async move {
        let outcome = long.increment().await?;
        let counted = outcome.succeeded && outcome.after == outcome.before + 1;
        if counted {
            Ok(outcome.promoted)
        } else {
            Err(LockError::Lost {
                name: format!("{outcome:?}"),
            })
        }
    }
    .boxed()
}

pub(crate) async fn an_atomic_long_is_exact_under_contention(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let none = the_atomic_long_is_exact(&zookeeper, |client, name| {
        increment(client.atomic_long(&name).optimistic_tries(u32::MAX))
    });
    ensure(none.await? == 0, || "an optimist took the mutex".into())?;
    let some = the_atomic_long_is_exact(&zookeeper, |client, name| {
        increment(client.atomic_long(&name))
    });
    some.await?;
    let some = the_atomic_long_is_exact(&zookeeper, |client, name| {
        increment(client.atomic_long(&name).optimistic_tries(1))
    });
    ensure(some.await? > 0, || {
        "nobody took the mutex: nothing was contended".into()
    })?;
    let all = the_atomic_long_is_exact(&zookeeper, |client, name| {
        increment(client.atomic_long(&name).optimistic_tries(0))
    });
    ensure(all.await? == 800, || {
        "somebody did not take the mutex".into()
    })
}

/// The twin reads, and sets without a version.
pub(crate) async fn an_atomic_long_without_versions_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let verdict = the_atomic_long_is_exact(&zookeeper, |client, name| {
        async move {
            let long = client.atomic_long(&name);
            let before = long.get().await?;
            long.force_set(before + 1).await.map(|()| true)
        }
        .boxed()
    });
    match verdict.await {
        Err(broken) if broken.contains("counted 800, there are") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// Others who are optimistic do not take the mutex: it alone would not do.
pub(crate) async fn a_mutex_does_not_replace_the_version(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let mixed = the_atomic_long_is_exact(&zookeeper, |client, name| {
        let long = client.atomic_long(&name);
        increment(if fastrand::bool() {
            long.optimistic_tries(0)
        } else {
            long.optimistic_tries(u32::MAX)
        })
    });
    let promoted = mixed.await?;
    ensure(promoted > 0 && promoted < 800, || {
        format!("{promoted} took the mutex")
    })
}

pub(crate) async fn who_has_lost_waits_for_the_mutex(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process, other) = (name(), zookeeper.process().await, zookeeper.process().await);
    let long = process.client.atomic_long(&name).optimistic_tries(0);
    let mutex = other.client.lock(long.lock_name());
    let guard = says("the mutex", mutex.acquire(SOON).await)?;
    let waiter = tokio::spawn({
        let long = long.clone();
        async move { long.add(5).await }
    });
    let queued = || async { zookeeper.left(long.lock_name()).await.len() == 2 };
    until("it waits for the mutex", queued).await?;
    ensure(says("get", long.get().await)? == 0, || {
        "it did not wait".into()
    })?;
    says("release", guard.release().await)?;
    let outcome = says("add", waiter.await.map_err(text)?)?;
    ensure(
        outcome
            == Outcome {
                succeeded: true,
                before: 0,
                after: 5,
                promoted: true,
            },
        || format!("{outcome:?}"),
    )?;

    let guard = says("the mutex", mutex.acquire(SOON).await)?;
    let dropped = tokio::spawn({
        let long = long.clone();
        async move { long.add(5).await }
    });
    until("it waits for the mutex", queued).await?;
    dropped.abort();
    until("the holder alone is left", || async {
        zookeeper.left(long.lock_name()).await.len() == 1
    })
    .await?;
    says("release", guard.release().await)?;
    ensure(says("get", long.get().await)? == 5, || {
        "a dropped one counted".into()
    })?;
    until("nobody is left", || async {
        zookeeper.left(long.lock_name()).await.is_empty()
    })
    .await
}

/// One increment whose answer is lost is counted once, and its caller told.
async fn an_unanswered_increment(zookeeper: &ZooKeeper, change: Change) -> Verdict {
    let name = name();
    says(
        "set",
        zookeeper
            .process()
            .await
            .client
            .atomic_long(&name)
            .try_set(40)
            .await,
    )?;
    let (process, _way, told) = unanswered(zookeeper, &name, change, true).await?;
    let now = says("get", process.client.atomic_long(&name).get().await)?;
    ensure(now == 41, || format!("counted {} times", now - 40))?;
    unknown(told)?;
    came_to(
        process.client.atomic_long(&name).increment().await,
        true,
        41,
        42,
    )
}

pub(crate) async fn an_increment_without_an_answer_is_unknown_and_counted_once(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    an_unanswered_increment(&zookeeper, |client, name| {
        async move { client.atomic_long(&name).increment().await.map(|_| ()) }.boxed()
    })
    .await
}

/// The twin tries again whatever it was told.
pub(crate) async fn an_increment_that_is_repeated_is_caught(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let verdict = an_unanswered_increment(&zookeeper, |client, name| {
        async move {
            while let Err(LockError::Unavailable { .. }) =
                client.atomic_long(&name).increment().await
            {}
            Ok(())
        }
        .boxed()
    });
    match verdict.await {
        Err(broken) if broken == "counted 2 times" => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}
