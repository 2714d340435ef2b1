//! Who holds a lock, as each kind of lock in Redis tells it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    redis::Redis,
    redlock::{Five, OnNodes},
};
use oversell_lock::{
    Guard, Holder, Lock, LockError,
    redis::{Lease, RedisClient},
};
use redis::AsyncTypedCommands;
use std::{future::Future, sync::Arc, time::Duration};

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Lease = Lease::Fixed(HOUR);

type Shown = Result<Option<Holder>, LockError>;

/// That another process sees nobody, then the one that the server shows, then nobody.
async fn is_shown<A, S>(redis: &Redis, name: &str, acquire: A, holder: impl Fn() -> S) -> Verdict
where
    A: Future<Output = Result<Guard, LockError>>,
    S: Future<Output = Shown>,
{
    let before = says("before", holder().await)?;
    ensure(before.is_none(), || {
        format!("nobody has it, and it shows {before:?}")
    })?;
    let guard = says("the lock", acquire.await)?;
    let shown = says("held", holder().await)?.ok_or("nobody is shown")?;
    let mut fields = redis
        .outsider()
        .await
        .hkeys(name)
        .await
        .map_err(|e| e.to_string())?;
    fields.retain(|field| field != "mode");
    ensure(fields == [shown.id.as_str()], || {
        format!("{shown:?}, and Redis has {fields:?}")
    })?;
    let bounds = HOUR.mul_f64(0.9)..=HOUR;
    ensure(
        shown.remaining.is_some_and(|left| bounds.contains(&left)),
        || format!("an hour's lease: {shown:?}"),
    )?;
    says("release", guard.release().await)?;
    let after = says("after", holder().await)?;
    ensure(after.is_none(), || {
        format!("it is free, and shows {after:?}")
    })
}

pub(crate) async fn every_lock_shows_its_holder_and_what_is_left_of_its_lease(
    redis: Arc<Redis>,
) -> Verdict {
    let [holder, other]: [RedisClient; 2] = [redis.process().await, redis.process().await];
    let n = name();
    is_shown(
        &redis,
        &n,
        holder.lock(&n).lease(LEASE).acquire(SOON),
        || async { other.lock(&n).holder().await },
    )
    .await?;
    let n = name();
    let fenced = holder.fenced_lock(&n).lease(LEASE);
    is_shown(&redis, &n, fenced.acquire(SOON), || async {
        other.fenced_lock(&n).holder().await
    })
    .await?;
    let n = name();
    let fair = holder.fair_lock(&n).lease(LEASE);
    is_shown(&redis, &n, fair.acquire(SOON), || async {
        other.fair_lock(&n).holder().await
    })
    .await?;
    let n = name();
    let write = holder.rw_lock(&n).write().lease(LEASE);
    is_shown(&redis, &n, write.acquire(SOON), || async {
        other.rw_lock(&n).write().holder().await
    })
    .await
}

pub(crate) async fn readers_are_shown_each_with_its_own_lease(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let lock = process.rw_lock(&name);
    let long = says("a reader", lock.read().lease(LEASE).acquire(SOON).await)?;
    let first = says("one reads", lock.read().holders().await)?;
    let short = says(
        "a reader",
        lock.read()
            .lease(Lease::Fixed(HOUR / 2))
            .acquire(SOON)
            .await,
    )?;
    let both = says("two read", lock.read().holders().await)?;
    let second = both
        .iter()
        .find(|holder| **holder != first[0] && holder.id != first[0].id);
    ensure(first.len() == 1 && both.len() == 2, || {
        format!("first {first:?}, then {both:?}")
    })?;
    ensure(
        second.is_some_and(|h| h.remaining <= Some(HOUR / 2)),
        || format!("half an hour's: {second:?}"),
    )?;
    ensure(first[0].remaining > Some(HOUR / 2), || {
        format!("an hour's: {first:?}")
    })?;
    let writer = says("nobody writes", lock.write().holder().await)?;
    ensure(writer.is_none(), || {
        format!("a writer beside readers: {writer:?}")
    })?;
    // As if its lease had ended: the field stays until somebody comes.
    let string = format!("{{{name}}}:{}:rwlock_timeout:1", first[0].id);
    redis
        .outsider()
        .await
        .del(string)
        .await
        .map_err(|e| e.to_string())?;
    let left = says("one is left", lock.read().holders().await)?;
    ensure(left.len() == 1 && left[0].id != first[0].id, || {
        format!("expired, and shown: {left:?}")
    })?;
    drop(long);
    says("release", short.release().await)
}

pub(crate) async fn what_is_no_lock_has_no_holder_and_says_so(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    redis
        .outsider()
        .await
        .set(&name, "a text")
        .await
        .map_err(|e| e.to_string())?;
    let shown = process.lock(&name).holder().await;
    redis
        .outsider()
        .await
        .del(&name)
        .await
        .map_err(|e| e.to_string())?;
    ensure(matches!(shown, Err(LockError::Refused { .. })), || {
        format!("a text: {shown:?}")
    })
}

/// Held on most of the nodes, and not on the few where the key has gone.
pub(crate) async fn a_redlock_is_held_by_whom_most_nodes_show(five: Arc<Five>) -> Verdict {
    let (name, process) = (name(), five.process().await);
    let lock = process.lock(&name).lease(LEASE);
    let before = says("before", lock.holder().await)?;
    let guard = says("the lock", lock.acquire(SOON).await)?;
    // The last of the five may still be asked.
    until("it is on every node", || async {
        five.left(&name).await.len() == 5
    })
    .await?;
    for (gone, node) in five.nodes().iter().enumerate().take(3) {
        let shown = says("held", lock.holder().await)?;
        let held = shown
            .as_ref()
            .is_some_and(|holder| holder.remaining > Some(HOUR.mul_f64(0.9)));
        ensure(before.is_none() && held, || {
            format!("gone from {gone} nodes: {shown:?}, before: {before:?}")
        })?;
        node.outsider()
            .await
            .del(&name)
            .await
            .map_err(|e| e.to_string())?;
    }
    let shown = says("on two nodes", lock.holder().await)?;
    ensure(shown.is_none(), || {
        format!("on two nodes of five: {shown:?}")
    })?;
    drop(guard);
    Ok(())
}
