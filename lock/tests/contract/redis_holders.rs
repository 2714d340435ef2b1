//! How each kind of lock in Redis names its holder.

use super::{redlock::until_on, support::*};
use oversell_lock::{Holder, redis::Redlock};
use redis::AsyncTypedCommands;

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Lease = Lease::Fixed(HOUR);

/// Another process sees nobody, then the one that the server shows, then nobody.
async fn is_shown<F: Future<Output = Result<Option<Holder>, LockError>>>(
    redis: &Redis,
    lock: &impl Lock,
    holder: impl Fn() -> F,
) -> Result {
    is("nobody has it", holder().await?, None)?;
    let guard = take(lock).await?;
    let shown = holder().await?.context("nobody is shown")?;
    let mut fields = redis.outsider().await.hkeys(lock.name()).await?;
    fields.retain(|field| field != "mode");
    is("what Redis has", fields, [shown.id.as_str()])?;
    let bounds = HOUR.mul_f64(0.9)..=HOUR;
    let lasts = shown.remaining.is_some_and(|left| bounds.contains(&left));
    ensure!(lasts, "an hour's lease: {shown:?}");
    guard.release().await?;
    is("it is free", holder().await?, None)
}

#[apply(test!)]
async fn every_lock_shows_its_holder_and_what_is_left_of_its_lease(redis: &Redis) -> Result {
    let (one, other) = (redis.client().await, redis.client().await);
    macro_rules! is_shown {
        ($($lock:ident $($half:ident)?),*) => {$(
            let n = name();
            let (held, asked) = (one.$lock(&n)$(.$half())?, other.$lock(&n)$(.$half())?);
            is_shown(redis, &held.lease(LEASE), || asked.holder()).await?;
        )*};
    }
    is_shown!(lock, fenced_lock, fair_lock, rw_lock write);
    Ok(())
}

/// An operator frees a lock: a waiter comes in, and its holder is told at its next renewal.
#[apply(test!)]
async fn a_lock_is_freed_by_force_and_its_holder_told(redis: &Redis) -> Result {
    let renewed = Lease::Watchdog(Redis::RENEWED);
    let (one, operator, other) = (
        redis.client().await,
        redis.client().await,
        redis.client().await,
    );
    macro_rules! is_freed {
        ($($lock:ident $(($half:ident, $waits:ident))?),*) => {$(
            let n = name();
            let held = take(&one.$lock(&n)$(.$half())?.lease(renewed)).await?;
            let waiter = acquiring(other.$lock(&n)$(.$waits())?);
            until("it is waited for", || redis.is_waited_for(&n)).await?;
            let asked = operator.$lock(&n)$(.$half())?;
            ensure!(asked.force_unlock().await?, "{}: it was held", stringify!($lock));
            let next = waiter.await?.context("it was not woken")?;
            told(&held).await?;
            lost("the late release", held.release().await)?;
            kept("the next hold", &next)?;
            next.release().await?;
            ensure!(!asked.force_unlock().await?, "{}: it was free", stringify!($lock));
        )*};
    }
    is_freed!(
        lock,
        fenced_lock,
        fair_lock,
        rw_lock(read, write),
        rw_lock(write, read)
    );
    // Of a lock that is held in the other way nothing is freed.
    let lock = one.rw_lock(&name());
    let reading = take(&lock.read()).await?;
    ensure!(
        !lock.write().force_unlock().await?,
        "a reader was freed as a writer"
    );
    kept("the reader", &reading)?;
    Ok(reading.release().await?)
}

#[apply(test!)]
async fn readers_are_shown_each_with_its_own_lease(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let lock = process.rw_lock(&name);
    let long = take(&lock.read().lease(LEASE)).await?;
    let first = lock.read().holders().await?;
    let short = Lease::Fixed(HOUR / 2);
    let short = take(&lock.read().lease(short)).await?;
    let both = lock.read().holders().await?;
    is("readers, first and then", (first.len(), both.len()), (1, 2))?;
    let second = both.iter().find(|holder| holder.id != first[0].id);
    let half = second.is_some_and(|holder| holder.remaining <= Some(HOUR / 2));
    ensure!(half, "half an hour's: {second:?}");
    ensure!(first[0].remaining > Some(HOUR / 2), "an hour's: {first:?}");
    is(
        "a writer beside readers",
        lock.write().holder().await?,
        None,
    )?;
    // As if its lease had ended: the field stays until somebody comes.
    let string = format!("{{{name}}}:{}:rwlock_timeout:1", first[0].id);
    redis.outsider().await.del(string).await?;
    let left = lock.read().holders().await?;
    let alone = left.len() == 1 && left[0].id != first[0].id;
    ensure!(alone, "expired, and shown: {left:?}");
    drop(long);
    Ok(short.release().await?)
}

#[apply(test!)]
async fn what_is_no_lock_has_no_holder_and_says_so(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    redis.outsider().await.set(&name, "a text").await?;
    let shown = process.lock(&name).holder().await;
    redis.outsider().await.del(&name).await?;
    refused("a text", shown)
}

/// Held on most of the nodes, and not on the few where the key has gone.
#[apply(test!)]
async fn a_redlock_is_held_by_the_one_that_most_nodes_show(five: &Five) -> Result {
    let (name, clients) = (name(), five.client().await);
    let lock = Redlock::new(&clients, &name).lease(LEASE);
    is("nobody has it", lock.holder().await?, None)?;
    let guard = take(&lock).await?;
    // The last of the five may still be asked.
    until_on(five, &name, 5).await?;
    for (gone, node) in five.0.iter().enumerate().take(3) {
        let shown = lock.holder().await?;
        let left = shown.as_ref().and_then(|holder| holder.remaining);
        let held = left > Some(HOUR.mul_f64(0.9));
        ensure!(held, "gone from {gone} nodes: {shown:?}");
        node.delete(&name).await;
    }
    is("on two nodes of five", lock.holder().await?, None)?;
    drop(guard);
    Ok(())
}

#[apply(test!)]
async fn a_redlock_is_freed_by_force_on_all_nodes(five: &Five) -> Result {
    let (name, one, other) = (name(), five.client().await, five.client().await);
    let [held, asked] = [&one, &other].map(|nodes| Redlock::new(nodes, &name).lease(LEASE));
    ensure!(!asked.force_unlock().await?, "nobody had it");
    let guard = take(&held).await?;
    until_on(five, &name, 5).await?;
    ensure!(asked.force_unlock().await?, "it was held");
    until_on(five, &name, 0).await?;
    let next = asked.try_acquire().await.context("it is not free")?;
    lost("the late release", guard.release().await)?;
    kept("the next hold", &next)?;
    Ok(next.release().await?)
}
