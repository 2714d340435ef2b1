//! How each kind of lock in Redis names its holder.

use super::{
    family::Server,
    redis::Redis,
    redlock::{Five, until_on},
    support::*,
};
use oversell_lock::{Holder, Lease, Lock, LockError, redis::Redlock};
use redis::AsyncTypedCommands;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Lease = Lease::Fixed(HOUR);

/// Another process sees nobody, then the one that the server shows, then nobody.
async fn is_shown<F: Future<Output = Result<Option<Holder>, LockError>>>(
    redis: &Redis,
    lock: &impl Lock,
    holder: impl Fn() -> F,
) -> Result<()> {
    let before = holder().await?;
    ensure!(before.is_none(), "nobody has it, and it shows {before:?}");
    let guard = take(lock).await?;
    let shown = holder().await?.context("nobody is shown")?;
    let mut fields = redis.outsider().await.hkeys(lock.name()).await?;
    fields.retain(|field| field != "mode");
    ensure!(
        fields == [shown.id.as_str()],
        "{shown:?}, and Redis has {fields:?}"
    );
    let bounds = HOUR.mul_f64(0.9)..=HOUR;
    let lasts = shown.remaining.is_some_and(|left| bounds.contains(&left));
    ensure!(lasts, "an hour's lease: {shown:?}");
    guard.release().await?;
    let after = holder().await?;
    ensure!(after.is_none(), "it is free, and shows {after:?}");
    Ok(())
}

#[apply(test!)]
async fn every_lock_shows_its_holder_and_what_is_left_of_its_lease(redis: &Redis) -> Result<()> {
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

#[apply(test!)]
async fn readers_are_shown_each_with_its_own_lease(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let lock = process.rw_lock(&name);
    let long = take(&lock.read().lease(LEASE)).await?;
    let first = lock.read().holders().await?;
    let short = Lease::Fixed(HOUR / 2);
    let short = take(&lock.read().lease(short)).await?;
    let both = lock.read().holders().await?;
    let second = both
        .iter()
        .find(|holder| **holder != first[0] && holder.id != first[0].id);
    ensure!(
        first.len() == 1 && both.len() == 2,
        "first {first:?}, then {both:?}"
    );
    ensure!(
        second.is_some_and(|h| h.remaining <= Some(HOUR / 2)),
        "half an hour's: {second:?}"
    );
    ensure!(first[0].remaining > Some(HOUR / 2), "an hour's: {first:?}");
    let writer = lock.write().holder().await?;
    ensure!(writer.is_none(), "a writer beside readers: {writer:?}");
    // As if its lease had ended: the field stays until somebody comes.
    let string = format!("{{{name}}}:{}:rwlock_timeout:1", first[0].id);
    redis.outsider().await.del(string).await?;
    let left = lock.read().holders().await?;
    ensure!(
        left.len() == 1 && left[0].id != first[0].id,
        "expired, and shown: {left:?}"
    );
    drop(long);
    Ok(short.release().await?)
}

#[apply(test!)]
async fn what_is_no_lock_has_no_holder_and_says_so(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    redis.outsider().await.set(&name, "a text").await?;
    let shown = process.lock(&name).holder().await;
    redis.outsider().await.del(&name).await?;
    refused("a text", shown)
}

/// Held on most of the nodes, and not on the few where the key has gone.
#[apply(test!)]
async fn a_redlock_is_held_by_the_one_that_most_nodes_show(five: &Five) -> Result<()> {
    let (name, clients) = (name(), five.client().await);
    let lock = Redlock::new(&clients, &name).lease(LEASE);
    let before = lock.holder().await?;
    let guard = take(&lock).await?;
    // The last of the five may still be asked.
    until_on(five, &name, 5).await?;
    for (gone, node) in five.0.iter().enumerate().take(3) {
        let shown = lock.holder().await?;
        let left = shown.as_ref().and_then(|holder| holder.remaining);
        let held = left > Some(HOUR.mul_f64(0.9));
        ensure!(
            before.is_none() && held,
            "gone from {gone} nodes: {shown:?}, before: {before:?}"
        );
        node.delete(&name).await;
    }
    let shown = lock.holder().await?;
    ensure!(shown.is_none(), "on two nodes of five: {shown:?}");
    drop(guard);
    Ok(())
}
