//! What the shared numbers in ZooKeeper promise beyond exactness, which `gates.rs` checks.

use crate::{support::*, zookeeper::*};
use oversell_lock::zk::{Outcome, Versioned};
use tokio::sync::watch;

fn at(value: i32, version: i32) -> Versioned {
    Versioned { value, version }
}

/// The node has these bytes and this version, as Curator's has.
async fn holds(zookeeper: &ZooKeeper, name: &str, bytes: &[u8], version: i32) -> Result {
    let (held, stat) = zookeeper.outsider().await.get_data(name).await?;
    ensure!(stat.ephemeral_owner == 0, "it goes with its session");
    ensure_equal("the node", (&held[..], stat.version), (bytes, version))
}

// --- shared count -------------------------------------------------------------------------------------------------

#[apply(test!)]
async fn a_shared_count_is_four_bytes(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let count = process.client.shared_count(&name, 0x0102_0304);
    ensure_equal("the seed", count.get().await?, at(0x0102_0304, 0))?;
    holds(zookeeper, &name, &[1, 2, 3, 4], 0).await?;
    ensure_equal("set", count.set(-2).await?, at(-2, 1))?;
    holds(zookeeper, &name, &[255, 255, 255, 254], 1).await?;
    let other = zookeeper.client().await;
    let other = other.client.shared_count(&name, 5).get().await?;
    ensure_equal("another seed", other, at(-2, 1))?;
    zookeeper.set_data(&name, b"host").await?;
    let host = i32::from_be_bytes(*b"host");
    ensure_equal("a host's name", count.get().await?.value, host)?;
    zookeeper.set_data(&name, b"127.0.0.1").await?;
    ensure_invalid("nine bytes", count.get().await)?;
    let unread = process.client.shared_count(&format!("{name}-unread"), 3);
    let set = unread.set(4).await?;
    ensure_equal("one that was not read", set.value, 4)?;
    holds(zookeeper, unread.name(), &[0, 0, 0, 4], set.version).await
}

#[apply(test!)]
async fn an_old_version_is_refused(zookeeper: &ZooKeeper) -> Result {
    let (name, one, two) = (name(), zookeeper.client().await, zookeeper.client().await);
    let [one, two] = [&one, &two].map(|member| member.client.shared_count(&name, 7));
    let seen = one.get().await?;
    let now = at(8, seen.version + 1);
    ensure_equal("the first", two.try_set(seen, 8).await?, Ok(now))?;
    ensure_equal("the second", one.try_set(seen, 9).await?, Err(now))?;
    let third = one.try_set(now, 9).await?;
    ensure_equal("the third", third.map(|set| set.value), Ok(9))
}

async fn hears(listener: &mut watch::Receiver<Versioned>, value: i32) -> Result {
    let heard = timeout(SOON, listener.wait_for(|seen| seen.value == value)).await;
    heard.with_context(|| format!("{value} was never heard of"))??;
    Ok(())
}

#[apply(test!)]
async fn a_listener_hears_of_others_through_cuts_and_sessions(zookeeper: &ZooKeeper) -> Result {
    let (name, process, other) = (name(), zookeeper.client().await, zookeeper.client().await);
    let setter = other.client.shared_count(&name, 0);
    let mut listener = process.client.shared_count(&name, 0).listen().await?;
    ensure_equal("the seed", listener.borrow().value, 0)?;
    setter.set(1).await?;
    hears(&mut listener, 1).await?;
    process.way.cut();
    setter.set(2).await?;
    process.way.mend();
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

/// The answer is lost with the connection. That a conditional set is not repeated is checked by `gates.rs`.
#[apply(test!)]
async fn a_set_without_an_answer_is_unknown_and_not_repeated(zookeeper: &ZooKeeper) -> Result {
    let (name, seeder) = (name(), zookeeper.client().await);
    let seen = seeder.client.shared_count(&name, 7);
    seen.get().await?;
    let mute = Mute::to(zookeeper.address())?;
    let process = zookeeper.process_with(&mute.address(), LONG_SESSION).await;
    connected(&process).await?;
    let count = process.client.shared_count(&name, 7);
    mute.mute();
    let mut set = pin!(count.set(8));
    let is_done = async || seen.get().await.is_ok_and(|now| now.value == 8);
    beside(&mut set, until("it is carried out", is_done)).await?;
    mute.cut();
    // The client may learn of the loss after its caller: an earlier request would be lost too.
    let is_cut = async || process.client.session().is_err();
    until("the loss is known", is_cut).await?;
    mute.mend();
    let answer = set.await;
    let said = matches!(&answer, Err(LockError::Unavailable { reason, .. }) if reason.to_string().contains("not known"));
    ensure!(said, "without an answer: {answer:?}");
    connected(&process).await?;
    // The server answers a session in order, so no earlier request follows.
    ensure_equal("set once", count.get().await?, at(8, 1))
}

// --- atomic long --------------------------------------------------------------------------------------------------

fn came_to(outcome: Answer<Outcome>, succeeded: bool, before: i64, after: i64) -> Result {
    let outcome = outcome.context("a change")?;
    let seen = (outcome.succeeded, outcome.before, outcome.after);
    ensure_equal("came to", seen, (succeeded, before, after))
}

#[apply(test!)]
async fn an_atomic_long_is_eight_bytes(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let long = process.client.atomic_long(&name);
    ensure_equal("at first", long.get().await?, 0)?;
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
    ensure_equal("forced", long.get().await?, 9)?;
    ensure!(!long.initialize(1).await?, "initialized twice");
    zookeeper.set_data(&name, &[]).await?;
    came_to(long.increment().await, true, 0, 1)?;
    zookeeper.set_data(&name, &[0; 4]).await?;
    ensure_invalid("four bytes", long.increment().await)?;
    let fresh = process.client.atomic_long(&format!("{name}-fresh"));
    ensure!(fresh.initialize(3).await?, "not initialized");
    ensure_equal("initialized", fresh.get().await?, 3)?;
    let forced = process.client.atomic_long(&format!("{name}-forced"));
    forced.force_set(4).await.context("force")?;
    ensure_equal("forced", forced.get().await?, 4)?;
    ensure_none(zookeeper.left(long.lock_name()).await)
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
        ensure_equal("while it waits", before, if goes_away { 5 } else { 0 })?;
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
        ensure_equal("counted once", long.get().await?, 5)?;
    }
    zookeeper.gone(long.lock_name()).await
}
