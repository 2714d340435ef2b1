//! What the shared numbers in ZooKeeper promise, and the twins that break it.

use super::{
    family::Server,
    mute::Mute,
    support::*,
    zookeeper::{LONG, Member, ZooKeeper, connected},
};
use futures::{FutureExt, future::BoxFuture};
use oversell::lab::Proxy;
use oversell_lock::{
    LockError,
    zk::{Outcome, Versioned, ZkAtomicLong, ZkClient},
};
use tokio::{sync::watch, task::JoinSet, time::timeout};

/// Each of the two clients counts in four tasks, a hundred times each; how often that was done, as the tasks know it.
async fn eight_times_a_hundred(
    zookeeper: &ZooKeeper,
    name: &str,
    count: fn(ZkClient, String) -> BoxFuture<'static, Result<bool, LockError>>,
) -> Result<usize> {
    let processes = [zookeeper.client().await, zookeeper.client().await];
    connected(&processes[0]).await?;
    connected(&processes[1]).await?;
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let (client, name) = (processes[n % 2].client.clone(), name.to_owned());
        tasks.spawn(async move {
            let mut told = 0;
            for _ in 0..100 {
                told += usize::from(count(client.clone(), name.clone()).await?);
            }
            anyhow::Ok(told)
        });
    }
    let mut told = 0;
    for task in tasks.join_all().await {
        told += task?;
    }
    Ok(told)
}

fn at(value: i32, version: i32) -> Versioned {
    Versioned { value, version }
}

/// What the node holds, and its version.
async fn held(zookeeper: &ZooKeeper, name: &str) -> Result<(Vec<u8>, i32)> {
    let (bytes, stat) = zookeeper.outsider().await.get_data(name).await?;
    ensure!(stat.ephemeral_owner == 0, "it goes with its session");
    Ok((bytes, stat.version))
}

// --- shared count -------------------------------------------------------------------------------------------------

#[apply(test!)]
async fn a_shared_count_is_four_bytes(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let count = process.client.shared_count(&name, 0x0102_0304);
    let first = count.get().await?;
    ensure!(first == at(0x0102_0304, 0), "{first:?}");
    ensure!(
        held(zookeeper, &name).await? == (vec![1, 2, 3, 4], 0),
        "not Curator's bytes"
    );
    let set = count.set(-2).await?;
    ensure!(set == at(-2, 1), "{set:?}");
    ensure!(
        held(zookeeper, &name).await? == (vec![255, 255, 255, 254], 1),
        "not Curator's bytes"
    );
    let other = zookeeper.client().await;
    let other = other.client.shared_count(&name, 5).get().await?;
    ensure!(other == set, "another seed: {other:?}");
    zookeeper.set_data(&name, b"host").await?;
    let host = count.get().await?;
    ensure!(host.value == i32::from_be_bytes(*b"host"), "{host:?}");
    zookeeper.set_data(&name, b"127.0.0.1").await?;
    invalid("nine bytes", count.get().await)?;
    let unread = process.client.shared_count(&format!("{name}-unread"), 3);
    let set = unread.set(4).await?;
    ensure!(
        set.value == 4 && held(zookeeper, unread.name()).await?.0 == [0, 0, 0, 4],
        "{set:?}"
    );
    Ok(())
}

#[apply(test!)]
async fn an_old_version_is_refused(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, one, two) = (name(), zookeeper.client().await, zookeeper.client().await);
    let [one, two] = [one, two].map(|member| (member.client.shared_count(&name, 7), member));
    let (one, two) = (&one.0, &two.0);
    let seen = one.get().await?;
    let set = two.try_set(seen, 8).await?;
    let now = at(8, seen.version + 1);
    ensure!(set == Ok(now), "the first: {set:?}");
    let refused = one.try_set(seen, 9).await?;
    ensure!(refused == Err(now), "the second: {refused:?}");
    let set = one.try_set(now, 9).await?;
    ensure!(set.is_ok_and(|set| set.value == 9), "the third: {set:?}");
    Ok(())
}

/// Counts 800 and finds what is there.
async fn the_shared_count_is_exact(
    zookeeper: &ZooKeeper,
    count: fn(ZkClient, String) -> BoxFuture<'static, Result<bool, LockError>>,
) -> Result<()> {
    let name = name();
    let process = zookeeper.client().await;
    process.client.shared_count(&name, 0).get().await?;
    let told = eight_times_a_hundred(zookeeper, &name, count).await?;
    let there = process.client.shared_count(&name, 0).get().await?.value;
    ensure!(
        (told, there) == (800, 800),
        "counted {told}, there are {there}"
    );
    Ok(())
}

#[apply(test!)]
async fn a_count_with_versions_is_exact(zookeeper: &ZooKeeper) -> Result<()> {
    the_shared_count_is_exact(zookeeper, |client, name| {
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
#[apply(test!)]
async fn a_count_without_versions_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let verdict = the_shared_count_is_exact(zookeeper, |client, name| {
        async move {
            let count = client.shared_count(&name, 0);
            let seen = count.get().await?;
            count.set(seen.value + 1).await.map(|_| true)
        }
        .boxed()
    });
    caught(verdict.await, "counted 800, there are")
}

async fn hears(listener: &mut watch::Receiver<Versioned>, value: i32) -> Result<()> {
    let heard = timeout(SOON, listener.wait_for(|seen| seen.value == value)).await;
    heard.with_context(|| format!("{value} was never heard of"))??;
    Ok(())
}

#[apply(test!)]
async fn a_listener_hears_of_others_through_cuts_and_sessions(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, other, way) = (
        name(),
        zookeeper.client().await,
        Proxy::to(zookeeper.address())?,
    );
    let process = zookeeper.process_with(&way.address(), LONG).await;
    let setter = other.client.shared_count(&name, 0);
    let mut listener = process.client.shared_count(&name, 0).listen().await?;
    ensure!(listener.borrow().value == 0, "not the seed");
    setter.set(1).await?;
    hears(&mut listener, 1).await?;
    way.cut();
    setter.set(2).await?;
    way.mend();
    hears(&mut listener, 2).await?;
    let session = connected(&process).await?.session_id();
    zookeeper.take_away(&process, &name).await;
    setter.set(3).await?;
    hears(&mut listener, 3).await?;
    let next = connected(&process).await?.session_id();
    ensure!(
        session != next,
        "the session is the same: the test shows nothing"
    );
    zookeeper.delete(&name).await?;
    hears(&mut listener, 0).await?;
    process.client.close().await;
    let ended = async { while listener.changed().await.is_ok() {} };
    timeout(SOON, ended)
        .await
        .context("the listener of a closed client goes on")
}

type Change = fn(ZkClient, String) -> BoxFuture<'static, Result<(), LockError>>;

/// A change whose answer is lost with its connection: what its caller is told, and the process with its way, connected
/// again. The node is there. A change that reads first has read it by then.
async fn unanswered(
    zookeeper: &ZooKeeper,
    name: &str,
    change: Change,
    reads_first: bool,
) -> Result<(Member, Mute, Result<(), LockError>)> {
    let mute = Mute::to(zookeeper.address())?;
    let process = zookeeper.process_with(&mute.address(), LONG).await;
    let session = connected(&process).await?;
    let (_, before) = held(zookeeper, name).await?;
    let mut change = change(process.client.clone(), name.to_owned());
    if reads_first {
        ensure!(futures::poll!(&mut change).is_pending(), "it did not read");
        // The server answers a session in order: what was read has come back.
        session.check_stat(name).await?;
    }
    mute.mute();
    let change = tokio::spawn(change);
    until("it is carried out", || async {
        held(zookeeper, name)
            .await
            .is_ok_and(|(_, now)| now > before)
    })
    .await?;
    ensure!(!change.is_finished(), "it was answered");
    mute.cut();
    // The client may hear of the loss after its caller: what is asked before that would be lost, too.
    until("the loss is known", || async {
        process.client.session().is_err()
    })
    .await?;
    mute.mend();
    let told = change.await?;
    connected(&process).await?;
    Ok((process, mute, told))
}

fn unknown(told: Result<(), LockError>) -> Result<()> {
    match told {
        Err(LockError::Unavailable { reason, .. }) if reason.to_string().contains("not known") => {
            Ok(())
        }
        other => bail!("without an answer: {other:?}"),
    }
}

#[apply(test!)]
async fn a_set_without_an_answer_is_unknown_and_not_repeated(zookeeper: &ZooKeeper) -> Result<()> {
    let changes: [Change; 2] = [
        |client, name| {
            async move { client.shared_count(&name, 7).set(8).await.map(|_| ()) }.boxed()
        },
        |client, name| {
            let seen = at(7, 0);
            async move {
                let count = client.shared_count(&name, 7);
                count.try_set(seen, 8).await.map(drop)
            }
            .boxed()
        },
    ];
    for change in changes {
        let name = name();
        let seeder = zookeeper.client().await;
        seeder.client.shared_count(&name, 7).get().await?;
        let (process, _way, told) = unanswered(zookeeper, &name, change, false).await?;
        unknown(told)?;
        // The server answers a session in order, so nothing comes after this that was asked before.
        let now = process.client.shared_count(&name, 7).get().await?;
        ensure!(now == at(8, 1), "set once, and is {now:?}");
    }
    Ok(())
}

// --- atomic long --------------------------------------------------------------------------------------------------

fn came_to(
    outcome: Result<Outcome, LockError>,
    succeeded: bool,
    before: i64,
    after: i64,
) -> Result<()> {
    let outcome = outcome.context("a change")?;
    let expected = Outcome {
        succeeded,
        before,
        after,
        promoted: outcome.promoted,
    };
    ensure!(outcome == expected, "came to {outcome:?}");
    Ok(())
}

#[apply(test!)]
async fn an_atomic_long_is_eight_bytes(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let long = process.client.atomic_long(&name);
    ensure!(long.get().await? == 0, "not 0 at first");
    ensure!(
        zookeeper
            .outsider()
            .await
            .check_stat(&name)
            .await?
            .is_none(),
        "get made a node"
    );
    came_to(long.compare_and_set(0, 1).await, false, 0, 0)?;
    came_to(long.increment().await, true, 0, 1)?;
    ensure!(
        held(zookeeper, &name).await? == (vec![0, 0, 0, 0, 0, 0, 0, 1], 0),
        "not Curator's bytes"
    );
    came_to(long.add(10).await, true, 1, 11)?;
    came_to(long.subtract(13).await, true, 11, -2)?;
    ensure!(
        held(zookeeper, &name).await? == (vec![255, 255, 255, 255, 255, 255, 255, 254], 2),
        "minus two"
    );
    came_to(long.decrement().await, true, -2, -3)?;
    came_to(long.compare_and_set(5, 6).await, false, -3, -3)?;
    came_to(long.compare_and_set(-3, 6).await, true, -3, 6)?;
    came_to(long.try_set(i64::MAX).await, true, 6, i64::MAX)?;
    came_to(long.increment().await, true, i64::MAX, i64::MIN)?;
    long.force_set(9).await.context("force")?;
    ensure!(long.get().await? == 9, "not forced");
    ensure!(!long.initialize(1).await?, "initialized twice");
    zookeeper.set_data(&name, &[]).await?;
    came_to(long.increment().await, true, 0, 1)?;
    zookeeper.set_data(&name, &[0; 4]).await?;
    invalid("four bytes", long.increment().await)?;
    let fresh = process.client.atomic_long(&format!("{name}-fresh"));
    ensure!(
        fresh.initialize(3).await.context("initialize")?,
        "not initialized"
    );
    let forced = process.client.atomic_long(&format!("{name}-forced"));
    forced.force_set(4).await.context("force")?;
    ensure!(
        (fresh.get().await?, forced.get().await?,) == (3, 4),
        "not set"
    );
    let locks = zookeeper.left(long.lock_name()).await;
    ensure!(locks.is_empty(), "left: {locks:?}");
    Ok(())
}

async fn the_atomic_long_is_exact(
    zookeeper: &ZooKeeper,
    count: fn(ZkClient, String) -> BoxFuture<'static, Result<bool, LockError>>,
) -> Result<usize> {
    let name = name();
    let promoted = eight_times_a_hundred(zookeeper, &name, count).await?;
    let process = zookeeper.client().await;
    let long = process.client.atomic_long(&name);
    let there = long.get().await?;
    ensure!(there == 800, "counted 800, there are {there}");
    zookeeper.gone(long.lock_name()).await?;
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

#[apply(test!)]
async fn an_atomic_long_is_exact_under_contention(zookeeper: &ZooKeeper) -> Result<()> {
    let none = the_atomic_long_is_exact(zookeeper, |client, name| {
        increment(client.atomic_long(&name).optimistic_tries(u32::MAX))
    });
    ensure!(none.await? == 0, "an optimist took the mutex");
    let some = the_atomic_long_is_exact(zookeeper, |client, name| {
        increment(client.atomic_long(&name))
    });
    some.await?;
    let some = the_atomic_long_is_exact(zookeeper, |client, name| {
        increment(client.atomic_long(&name).optimistic_tries(1))
    });
    ensure!(
        some.await? > 0,
        "nobody took the mutex: nothing was contended"
    );
    let all = the_atomic_long_is_exact(zookeeper, |client, name| {
        increment(client.atomic_long(&name).optimistic_tries(0))
    });
    ensure!(all.await? == 800, "somebody did not take the mutex");
    Ok(())
}

/// The twin reads, and sets without a version.
#[apply(test!)]
async fn an_atomic_long_without_versions_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let verdict = the_atomic_long_is_exact(zookeeper, |client, name| {
        async move {
            let long = client.atomic_long(&name);
            let before = long.get().await?;
            long.force_set(before + 1).await.map(|()| true)
        }
        .boxed()
    });
    caught(verdict.await, "counted 800, there are")
}

/// Optimistic others do not take the mutex: it alone would not do.
#[apply(test!)]
async fn a_mutex_does_not_replace_the_version(zookeeper: &ZooKeeper) -> Result<()> {
    let mixed = the_atomic_long_is_exact(zookeeper, |client, name| {
        let long = client.atomic_long(&name);
        increment(if fastrand::bool() {
            long.optimistic_tries(0)
        } else {
            long.optimistic_tries(u32::MAX)
        })
    });
    let promoted = mixed.await?;
    ensure!(promoted > 0 && promoted < 800, "{promoted} took the mutex");
    Ok(())
}

#[apply(test!)]
async fn a_loser_waits_for_the_mutex(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, other) = (name(), zookeeper.client().await, zookeeper.client().await);
    let long = process.client.atomic_long(&name).optimistic_tries(0);
    let mutex = other.client.lock(long.lock_name());
    let guard = take(&mutex).await?;
    let waiter = tokio::spawn({
        let long = long.clone();
        async move { long.add(5).await }
    });
    let queued = || async { zookeeper.left(long.lock_name()).await.len() == 2 };
    until("it waits for the mutex", queued).await?;
    ensure!(long.get().await? == 0, "it did not wait");
    guard.release().await?;
    let outcome = waiter.await?.context("add")?;
    ensure!(
        outcome
            == Outcome {
                succeeded: true,
                before: 0,
                after: 5,
                promoted: true,
            },
        "{outcome:?}"
    );

    let guard = take(&mutex).await?;
    let dropped = tokio::spawn({
        let long = long.clone();
        async move { long.add(5).await }
    });
    until("it waits for the mutex", queued).await?;
    dropped.abort();
    zookeeper.until_nodes(long.lock_name(), 1).await?;
    guard.release().await?;
    ensure!(long.get().await? == 5, "a dropped one counted");
    zookeeper.gone(long.lock_name()).await
}

/// One increment whose answer is lost is counted once, and its caller told.
async fn an_unanswered_increment(zookeeper: &ZooKeeper, change: Change) -> Result<()> {
    let name = name();
    let setter = zookeeper.client().await;
    setter.client.atomic_long(&name).try_set(40).await?;
    let (process, _way, told) = unanswered(zookeeper, &name, change, true).await?;
    let now = process.client.atomic_long(&name).get().await?;
    ensure!(now == 41, "counted {} times", now - 40);
    unknown(told)?;
    came_to(
        process.client.atomic_long(&name).increment().await,
        true,
        41,
        42,
    )
}

#[apply(test!)]
async fn an_increment_without_an_answer_is_unknown_and_counted_once(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    an_unanswered_increment(zookeeper, |client, name| {
        async move { client.atomic_long(&name).increment().await.map(|_| ()) }.boxed()
    })
    .await
}

/// The twin tries again whatever it was told.
#[apply(test!)]
async fn an_increment_that_is_repeated_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let verdict = an_unanswered_increment(zookeeper, |client, name| {
        async move {
            while let Err(LockError::Unavailable { .. }) =
                client.atomic_long(&name).increment().await
            {}
            Ok(())
        }
        .boxed()
    });
    caught(verdict.await, "counted 2 times")
}
