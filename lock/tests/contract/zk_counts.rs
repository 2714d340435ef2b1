//! What the shared numbers in ZooKeeper promise, and the twins that break it.

use super::{support::*, zookeeper::*};
use oversell_lock::zk::{Outcome, Versioned, ZkAtomicLong, ZkClient};
use tokio::sync::watch;

fn at(value: i32, version: i32) -> Versioned {
    Versioned { value, version }
}

/// The node has these bytes and this version, as Curator's has.
async fn holds(zookeeper: &ZooKeeper, name: &str, bytes: &[u8], version: i32) -> Result {
    let (held, stat) = zookeeper.outsider().await.get_data(name).await?;
    ensure!(stat.ephemeral_owner == 0, "it goes with its session");
    is("the node", (&held[..], stat.version), (bytes, version))
}

/// The number is 0. Each of two clients counts in four tasks, 25 times each: then it is 200. Says how often the
/// mutex was taken for that.
async fn is_exact(
    zookeeper: &ZooKeeper,
    read: impl AsyncFn(&ZkClient, &str) -> Answer<i64>,
    count: impl AsyncFn(&ZkClient, &str) -> Answer<bool>,
) -> Result<usize> {
    let name = name();
    let processes = [zookeeper.client().await, zookeeper.client().await];
    is("at first", read(&processes[0].client, &name).await?, 0)?;
    let promoted = try_join_all((0..8).map(async |n| {
        let mut promoted = 0;
        for _ in 0..25 {
            promoted += usize::from(count(&processes[n % 2].client, &name).await?);
        }
        Answer::Ok(promoted)
    }));
    let promoted = promoted.await?.iter().sum();
    let there = read(&processes[0].client, &name).await?;
    ensure!(there == 200, "counted 200, there are {there}");
    let lock = processes[0]
        .client
        .atomic_long(&name)
        .lock_name()
        .to_owned();
    zookeeper.gone(&lock).await?;
    Ok(promoted)
}

// --- shared count -------------------------------------------------------------------------------------------------

#[apply(test!)]
async fn a_shared_count_is_four_bytes(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let count = process.client.shared_count(&name, 0x0102_0304);
    is("the seed", count.get().await?, at(0x0102_0304, 0))?;
    holds(zookeeper, &name, &[1, 2, 3, 4], 0).await?;
    is("set", count.set(-2).await?, at(-2, 1))?;
    holds(zookeeper, &name, &[255, 255, 255, 254], 1).await?;
    let other = zookeeper.client().await;
    let other = other.client.shared_count(&name, 5).get().await?;
    is("another seed", other, at(-2, 1))?;
    zookeeper.set_data(&name, b"host").await?;
    let host = i32::from_be_bytes(*b"host");
    is("a host's name", count.get().await?.value, host)?;
    zookeeper.set_data(&name, b"127.0.0.1").await?;
    invalid("nine bytes", count.get().await)?;
    let unread = process.client.shared_count(&format!("{name}-unread"), 3);
    let set = unread.set(4).await?;
    is("one that was not read", set.value, 4)?;
    holds(zookeeper, unread.name(), &[0, 0, 0, 4], set.version).await
}

#[apply(test!)]
async fn an_old_version_is_refused(zookeeper: &ZooKeeper) -> Result {
    let (name, one, two) = (name(), zookeeper.client().await, zookeeper.client().await);
    let [one, two] = [&one, &two].map(|member| member.client.shared_count(&name, 7));
    let seen = one.get().await?;
    let now = at(8, seen.version + 1);
    is("the first", two.try_set(seen, 8).await?, Ok(now))?;
    is("the second", one.try_set(seen, 9).await?, Err(now))?;
    let third = one.try_set(now, 9).await?;
    is("the third", third.map(|set| set.value), Ok(9))
}

async fn shared(client: &ZkClient, name: &str) -> Answer<i64> {
    Ok(client.shared_count(name, 0).get().await?.value.into())
}

#[apply(test!)]
async fn a_count_with_versions_is_exact(zookeeper: &ZooKeeper) -> Result {
    let exact = is_exact(zookeeper, shared, async |client, name| {
        let count = client.shared_count(name, 0);
        let mut seen = count.get().await?;
        while let Err(now) = count.try_set(seen, seen.value + 1).await? {
            seen = now;
        }
        Ok(false)
    });
    exact.await.map(drop)
}

/// The twin reads and sets, and asks for no version.
#[apply(test!)]
async fn a_count_without_versions_is_caught(zookeeper: &ZooKeeper) -> Result {
    let verdict = is_exact(zookeeper, shared, async |client, name| {
        let count = client.shared_count(name, 0);
        let seen = count.get().await?;
        count.set(seen.value + 1).await.map(|_| false)
    });
    caught(verdict.await, "counted 200, there are")
}

async fn hears(listener: &mut watch::Receiver<Versioned>, value: i32) -> Result {
    let heard = timeout(SOON, listener.wait_for(|seen| seen.value == value)).await;
    heard.with_context(|| format!("{value} was never heard of"))??;
    Ok(())
}

#[apply(test!)]
async fn a_listener_hears_of_others_through_cuts_and_sessions(zookeeper: &ZooKeeper) -> Result {
    let (name, other) = (name(), zookeeper.client().await);
    let way = Proxy::to(zookeeper.address())?;
    let process = zookeeper.process_with(&way.address(), LONG).await;
    let setter = other.client.shared_count(&name, 0);
    let mut listener = process.client.shared_count(&name, 0).listen().await?;
    is("the seed", listener.borrow().value, 0)?;
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
    ensure!(session != next, "the same session: the test shows nothing");
    zookeeper.delete(&name).await?;
    hears(&mut listener, 0).await?;
    process.client.close().await;
    let ended = async { while listener.changed().await.is_ok() {} };
    let ended = timeout(SOON, ended).await;
    ended.context("the listener of a closed client goes on")
}

/// A change whose answer is lost with its connection: what its caller is told, and the process with its way, connected
/// again. The node is there. A change that reads first has read it by then.
async fn unanswered(
    zookeeper: &ZooKeeper,
    name: &str,
    change: impl AsyncFnOnce(&ZkClient) -> Answer,
    reads_first: bool,
) -> Result<(Member, Mute, Answer)> {
    let mute = Mute::to(zookeeper.address())?;
    let process = zookeeper.process_with(&mute.address(), LONG).await;
    let session = connected(&process).await?;
    let outsider = zookeeper.outsider().await;
    let version = async || anyhow::Ok(outsider.get_data(name).await?.1.version);
    let before = version().await?;
    let told = {
        let mut change = pin!(change(&process.client));
        if reads_first {
            ensure!(futures::poll!(&mut change).is_pending(), "it did not read");
            // The server answers a session in order: what was read has come back.
            session.check_stat(name).await?;
        }
        mute.mute();
        let is_done = async || version().await.is_ok_and(|now| now > before);
        beside(&mut change, until("it is carried out", is_done)).await?;
        mute.cut();
        // The client may hear of the loss after its caller: what is asked before that would be lost, too.
        let is_cut = async || process.client.session().is_err();
        until("the loss is known", is_cut).await?;
        mute.mend();
        change.await
    };
    connected(&process).await?;
    Ok((process, mute, told))
}

fn unknown(told: Answer) -> Result {
    let said = matches!(&told, Err(LockError::Unavailable { reason, .. }) if reason.to_string().contains("not known"));
    ensure!(said, "without an answer: {told:?}");
    Ok(())
}

#[apply(test!)]
async fn a_set_without_an_answer_is_unknown_and_not_repeated(zookeeper: &ZooKeeper) -> Result {
    for by_version in [false, true] {
        let (name, seeder) = (name(), zookeeper.client().await);
        seeder.client.shared_count(&name, 7).get().await?;
        let set = async |client: &ZkClient| {
            let count = client.shared_count(&name, 7);
            match by_version {
                true => count.try_set(at(7, 0), 8).await.map(drop),
                false => count.set(8).await.map(drop),
            }
        };
        let (process, _way, told) = unanswered(zookeeper, &name, set, false).await?;
        unknown(told)?;
        // The server answers a session in order, so nothing comes after this that was asked before.
        let now = process.client.shared_count(&name, 7).get().await?;
        is("set once", now, at(8, 1))?;
    }
    Ok(())
}

// --- atomic long --------------------------------------------------------------------------------------------------

fn came_to(outcome: Answer<Outcome>, succeeded: bool, before: i64, after: i64) -> Result {
    let outcome = outcome.context("a change")?;
    let seen = (outcome.succeeded, outcome.before, outcome.after);
    is("came to", seen, (succeeded, before, after))
}

#[apply(test!)]
async fn an_atomic_long_is_eight_bytes(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let long = process.client.atomic_long(&name);
    is("at first", long.get().await?, 0)?;
    let made = zookeeper.outsider().await.check_stat(&name).await?;
    ensure!(made.is_none(), "get made a node");
    came_to(long.compare_and_set(0, 1).await, false, 0, 0)?;
    came_to(long.increment().await, true, 0, 1)?;
    holds(zookeeper, &name, &[0, 0, 0, 0, 0, 0, 0, 1], 0).await?;
    came_to(long.add(10).await, true, 1, 11)?;
    came_to(long.subtract(13).await, true, 11, -2)?;
    let minus_two = [255, 255, 255, 255, 255, 255, 255, 254];
    holds(zookeeper, &name, &minus_two, 2).await?;
    came_to(long.decrement().await, true, -2, -3)?;
    came_to(long.compare_and_set(5, 6).await, false, -3, -3)?;
    came_to(long.compare_and_set(-3, 6).await, true, -3, 6)?;
    came_to(long.try_set(i64::MAX).await, true, 6, i64::MAX)?;
    came_to(long.increment().await, true, i64::MAX, i64::MIN)?;
    long.force_set(9).await.context("force")?;
    is("forced", long.get().await?, 9)?;
    ensure!(!long.initialize(1).await?, "initialized twice");
    zookeeper.set_data(&name, &[]).await?;
    came_to(long.increment().await, true, 0, 1)?;
    zookeeper.set_data(&name, &[0; 4]).await?;
    invalid("four bytes", long.increment().await)?;
    let fresh = process.client.atomic_long(&format!("{name}-fresh"));
    ensure!(fresh.initialize(3).await?, "not initialized");
    is("initialized", fresh.get().await?, 3)?;
    let forced = process.client.atomic_long(&format!("{name}-forced"));
    forced.force_set(4).await.context("force")?;
    is("forced", forced.get().await?, 4)?;
    none_of(zookeeper.left(long.lock_name()).await)
}

async fn long(client: &ZkClient, name: &str) -> Answer<i64> {
    client.atomic_long(name).get().await
}

/// Whether it took the mutex.
async fn increment(long: ZkAtomicLong) -> Answer<bool> {
    let outcome = long.increment().await?;
    let counted = outcome.succeeded && outcome.after == outcome.before + 1;
    let name = format!("{outcome:?}");
    counted
        .then_some(outcome.promoted)
        .ok_or(LockError::Lost { name })
}

#[apply(test!)]
async fn an_atomic_long_is_exact_under_contention(zookeeper: &ZooKeeper) -> Result {
    for tries in [Some(u32::MAX), None, Some(1), Some(0)] {
        let took_the_mutex = is_exact(zookeeper, long, async |client, name| {
            let long = client.atomic_long(name);
            increment(tries.map_or(long.clone(), |tries| long.optimistic_tries(tries))).await
        });
        let times = took_the_mutex.await?;
        let as_it_must = match tries {
            Some(0) => times == 200,
            Some(1) => times > 0,
            Some(_) => times == 0,
            None => true,
        };
        ensure!(as_it_must, "{times} took the mutex, with {tries:?} tries");
    }
    Ok(())
}

/// The twin reads, and sets without a version.
#[apply(test!)]
async fn an_atomic_long_without_versions_is_caught(zookeeper: &ZooKeeper) -> Result {
    let verdict = is_exact(zookeeper, long, async |client, name| {
        let long = client.atomic_long(name);
        let before = long.get().await?;
        long.force_set(before + 1).await.map(|()| true)
    });
    caught(verdict.await, "counted 200, there are")
}

/// Optimistic others do not take the mutex: it alone would not do.
#[apply(test!)]
async fn a_mutex_does_not_replace_the_version(zookeeper: &ZooKeeper) -> Result {
    let mixed = is_exact(zookeeper, long, async |client, name| {
        let tries = if fastrand::bool() { 0 } else { u32::MAX };
        increment(client.atomic_long(name).optimistic_tries(tries)).await
    });
    let promoted = mixed.await?;
    ensure!(0 < promoted && promoted < 200, "{promoted} took the mutex");
    Ok(())
}

#[apply(test!)]
async fn a_loser_waits_for_the_mutex(zookeeper: &ZooKeeper) -> Result {
    let (name, process, other) = (name(), zookeeper.client().await, zookeeper.client().await);
    let long = process.client.atomic_long(&name).optimistic_tries(0);
    let mutex = other.client.lock(long.lock_name());
    for goes_away in [false, true] {
        let held = take(&mutex).await?;
        let adds = long.clone();
        let waiter = tokio::spawn(async move { adds.add(5).await });
        zookeeper.until_nodes(long.lock_name(), 2).await?;
        let before = long.get().await?;
        is("while it waits", before, if goes_away { 5 } else { 0 })?;
        if goes_away {
            waiter.abort();
            zookeeper.until_nodes(long.lock_name(), 1).await?;
            held.release().await?;
        } else {
            held.release().await?;
            let outcome = waiter.await?;
            let promoted = outcome.as_ref().is_ok_and(|outcome| outcome.promoted);
            ensure!(promoted, "not by the mutex: {outcome:?}");
            came_to(outcome, true, 0, 5)?;
        }
        is("counted once", long.get().await?, 5)?;
    }
    zookeeper.gone(long.lock_name()).await
}

/// One increment whose answer is lost is counted once, and its caller told.
async fn is_counted_once(
    zookeeper: &ZooKeeper,
    change: impl AsyncFnOnce(ZkAtomicLong) -> Answer,
) -> Result {
    let (name, setter) = (name(), zookeeper.client().await);
    setter.client.atomic_long(&name).try_set(40).await?;
    let change = async |client: &ZkClient| change(client.atomic_long(&name)).await;
    let (process, _way, told) = unanswered(zookeeper, &name, change, true).await?;
    let now = long(&process.client, &name).await?;
    ensure!(now == 41, "counted {} times", now - 40);
    unknown(told)?;
    let next = process.client.atomic_long(&name).increment().await;
    came_to(next, true, 41, 42)
}

#[apply(test!)]
async fn an_increment_without_an_answer_is_unknown_and_counted_once(
    zookeeper: &ZooKeeper,
) -> Result {
    is_counted_once(zookeeper, async |long| long.increment().await.map(drop)).await
}

/// The twin tries again whatever it was told.
#[apply(test!)]
async fn an_increment_that_is_repeated_is_caught(zookeeper: &ZooKeeper) -> Result {
    let verdict = is_counted_once(zookeeper, async |long| {
        while let Err(LockError::Unavailable { .. }) = long.increment().await {}
        Ok(())
    });
    caught(verdict.await, "counted 2 times")
}
