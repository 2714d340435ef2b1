//! Temporary refusals of Redis (as a replica, without replicas, with a full disk or memory, without a login): they are
//! reported as such, leave nothing behind, and pending releases succeed later. And final refusals, half-way through a
//! script.

use crate::{redis::client, redis::faults::first_connection, redis::own::OwnRedis, support::*};
use oversell_lock::Fence;
use redis::AsyncTypedCommands;

/// Outlasts the test, so only an undo frees the lock.
const LONG_LEASE: Lease = Lease::Fixed(Duration::from_secs(200));

/// Settings that make Redis refuse every write: a missing primary, missing replicas.
const REFUSE: [&[&str]; 2] = [&["REPLICAOF", "127.0.0.1", "1"], &["CONFIG", "SET", "min-replicas-to-write", "1"]];

/// A refused command has done nothing, so nothing is undone. New connections, one of which may lead to another server,
/// are made with back-off.
#[apply(test!)]
async fn a_write_that_is_refused_for_a_while_leaves_nothing_to_do(_: &Redis) -> Result {
    let (name, redis) = (name(), OwnRedis::start().await?);
    let mute = Mute::to(redis.host())?;
    let process = redis.client_at(&mute.address()).await;
    let [fair, rw] = ["fair", "rw"].map(|kind| format!("{name}-{kind}"));
    pass(&process.lock(&name)).await?;
    let semaphore = process.semaphore(&format!("{name}-semaphore"));
    semaphore.try_set_permits(1).await?;
    redis.ask::<()>(REFUSE[0]).await?;
    let before = redis.connections().await?;
    for _ in 0..10 {
        let tries = (0..20).map(async |_| {
            ensure_unavailable("a lock", process.lock(&name).lease(LONG_LEASE).acquire(SOON).await)?;
            ensure_unavailable("a fair lock", process.fair_lock(&fair).acquire(SOON).await)?;
            ensure_unavailable("a reader", process.rw_lock(&rw).read().acquire(SOON).await)?;
            ensure_unavailable("a permit", semaphore.acquire(1, SOON).await)
        });
        try_join_all(tries).await?;
    }
    let made = redis.connections().await? - before;
    ensure!((1..60).contains(&made), "{made} new connections for 800 tries");
    let sent = mute.requests();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    ensure_equal("requests of nobody", mute.requests() - sent, 0)?;
    redis.ask::<()>(&["REPLICAOF", "NO", "ONE"]).await?;
    let works = async || pass(&process.lock(&name)).await.is_ok();
    until("it works again", works).await
}

/// The old server refuses, so the client looks for the primary at its address again.
#[apply(test!)]
async fn a_client_of_a_demoted_primary_finds_the_new_one(_: &Redis) -> Result {
    for refuse in REFUSE {
        let (name, [old, new]) = (name(), [OwnRedis::start().await?, OwnRedis::start().await?]);
        let moved = first_connection(old.host(), Some(new.host())).await?;
        let process = old.client_at(&moved).await;
        pass(&process.lock(&name)).await?;
        old.ask::<()>(refuse).await?;
        ensure_unavailable("the old one", process.lock(&name).try_acquire().await)?;
        let guard = take(&process.lock(&name)).await.context(refuse[0])?;
        ensure_equal("the new one", new.keys(&name).await, [&*name])?;
        guard.release().await?;
    }
    Ok(())
}

/// A full memory refuses acquires, but not releases.
#[apply(test!)]
async fn a_full_memory_is_told_as_such_and_keeps_nothing(_: &Redis) -> Result {
    let (name, redis) = (name(), OwnRedis::start().await?);
    let process = redis.client().await;
    let guard = take(&process.lock(&name).lease(LONG_LEASE)).await?;
    redis.set("maxmemory", "1").await?;
    let other = format!("{name}-other");
    ensure_unavailable("another lock", process.lock(&other).try_acquire().await)?;
    guard.release().await?;
    redis.set("maxmemory", "0").await?;
    pass(&process.lock(&name)).await?;
    pass(&process.lock(&other)).await
}

/// After SCRIPT FLUSH, as after a restart, each script is sent again once.
#[apply(test!)]
async fn scripts_that_the_server_has_forgotten_are_sent_again(_: &Redis) -> Result {
    let (name, redis) = (name(), OwnRedis::start().await?);
    let process = redis.client().await;
    for _ in 0..3 {
        let guard = take(&process.fenced_lock(&name)).await?;
        redis.ask::<()>(&["SCRIPT", "FLUSH"]).await?;
        guard.release().await?;
    }
    redis.no_key_left(&format!("{name}:")).await
}

/// If the counter of tokens is a text, the lock is refused, and stays free.
#[apply(test!)]
async fn an_acquire_that_is_refused_half_way_leaves_the_lock_free(redis: &Redis) -> Result {
    let (name, process, other) = (name(), redis.client().await, redis.client().await);
    let token = format!("redisson_lock_token:{{{name}}}");
    redis.outsider().await.set(&token, "no number").await?;
    let fenced = process.fenced_lock(&name).lease(LONG_LEASE);
    ensure_refused("a token that cannot be drawn", fenced.try_acquire().await)?;
    let free = other.lock(&name).try_acquire().await;
    free.context("the lock is held by nobody")?.release().await?;

    // A hand-off within the process fails the same way; the other waiters still get the lock.
    let holder = take(&process.lock(&name).lease(LONG_LEASE)).await?;
    let plain = process.lock(&name);
    // They join the line in this order.
    let (mut first, mut second) = (pin!(fenced.acquire(SOON)), pin!(plain.acquire(SOON)));
    ensure!(futures::poll!(&mut first).is_pending(), "it did not wait");
    ensure!(futures::poll!(&mut second).is_pending(), "it did not wait");
    let (released, first, second) = tokio::join!(holder.release(), first, second);
    released.context("the holder's release")?;
    ensure_refused("a token that cannot be drawn, by hand-off", first)?;
    let second = second.context("one's own error was told to another")?;
    second.release().await?;
    pass(&other.lock(&name)).await?;
    redis.delete(&token).await;
    Ok(())
}

/// The next token would exceed the server's range.
#[apply(test!)]
async fn a_counter_is_not_lifted_to_its_end(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let lock = process.fenced_lock(&name);
    let end = i64::MAX.unsigned_abs();
    for seen in [u64::MAX, end + 1, end] {
        ensure_invalid("beyond the end", lock.lift(Fence(seen)).await)?;
    }
    lock.lift(Fence(end - 1)).await?;
    let guard = take(&lock).await?;
    ensure_equal("the last token", guard.fence(), Some(Fence(end)))?;
    guard.release().await.context("the last one")
}

/// The holder's lock was taken away and its connection closed: it learns of it before the next renewal, though it never
/// listened.
#[apply(test!)]
async fn a_holder_whose_connection_was_closed_looks_at_once(_: &Redis) -> Result {
    let (name, redis) = (name(), OwnRedis::start().await?);
    let process = client(&Process::new(), &redis.host(), SOON * 10, SOON);
    let guard = take(&process.lock(&name)).await?;
    redis.ask::<()>(&["FLUSHALL"]).await?;
    redis.close_all().await?;
    wait_until_lost(&guard).await?;
    ensure_lost("the late release", guard.release().await)
}

/// The client's other handles are gone and the connection is cut when the guard is released.
#[apply(test!)]
async fn a_release_is_answered_though_its_client_was_dropped(redis: &Redis) -> Result {
    let name = name();
    let mute = Mute::to(redis.host())?;
    let process = redis.client_at(&mute.address()).await;
    let guard = take(&process.lock(&name).lease(LONG_LEASE)).await?;
    drop(process);
    mute.cut();
    let released = timeout(SOON, guard.release()).await;
    ensure_unavailable("while it is cut", released.context("no answer")?)?;
    mute.mend();
    pass(&redis.client().await.lock(&name)).await
}
