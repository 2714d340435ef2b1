//! What the permits that expire promise, and the twin whose release does not look.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    permits::crowd,
    redis::Redis,
};
use oversell_lock::{
    Guard, LockError,
    redis::{Lease, RedisClient},
};
use redis::AsyncCommands;
use std::{sync::Arc, time::Duration};

const LEASE: Lease = Lease::Fixed(Duration::from_millis(300));
const LONG: Lease = Lease::Fixed(SOON);

async fn one(process: &RedisClient, name: &str, lease: Lease) -> Result<Guard, String> {
    says(
        "a permit",
        process.permits(name).lease(lease).acquire(SOON).await,
    )
}

async fn free(process: &RedisClient, name: &str) -> Result<i64, String> {
    says("free", process.permits(name).available_permits().await)
}

async fn leases(redis: &Redis, name: &str) -> Result<Vec<(Vec<u8>, i64)>, String> {
    redis
        .outsider()
        .await
        .zrange_withscores(format!("{{{name}}}:timeout"), 0, -1)
        .await
        .map_err(|e| e.to_string())
}

pub(crate) async fn expirable_permits_are_never_more_than_were_set(redis: Arc<Redis>) -> Verdict {
    let (name, mut processes) = (name(), Vec::new());
    for _ in 0..3 {
        processes.push(Arc::new(redis.process().await));
    }
    ensure(
        says("set", processes[0].permits(&name).try_set_permits(3).await)?,
        || "not set".into(),
    )?;
    ensure(
        !says("set", processes[1].permits(&name).try_set_permits(3).await)?,
        || "set twice".into(),
    )?;
    crowd(processes.clone(), &name, |process, name, hall| async move {
        let permit = says("a turn", process.permits(&name).acquire(SOON * 3).await)?;
        hall.visit().await;
        says("release", permit.release().await)
    })
    .await?;
    let left = redis.left(&name).await;
    ensure(
        free(&processes[0], &name).await? == 3 && left == [name.as_str()],
        || format!("left: {left:?}"),
    )
}

/// A holder whose process is gone: only its lease can end it.
pub(crate) async fn the_permit_of_a_dead_holder_comes_back(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    says("set", process.permits(&name).try_set_permits(1).await)?;
    let holder = one(&process, &name, LEASE).await?;
    let next = one(&redis.process().await, &name, LONG).await?;
    ensure(holder.is_lost(), || {
        "the next one has the permit, and the first was not told".into()
    })?;
    says("release", next.release().await)
}

/// One permit: its first holder's has expired and is the second's by now.
async fn late(redis: &Redis, name: &str) -> Result<(RedisClient, Guard, Guard, Vec<u8>), String> {
    let process = redis.process().await;
    says("set", process.permits(name).try_set_permits(1).await)?;
    let first = one(&process, name, LEASE).await?;
    let id = leases(redis, name).await?.remove(0).0;
    let second = one(&process, name, LONG).await?;
    Ok((process, first, second, id))
}

pub(crate) async fn an_expired_permit_is_not_given_back_twice(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let (process, first, second, _) = late(&redis, &name).await?;
    match first.release().await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("an expired permit was released: {other:?}")),
    }
    ensure(free(&process, &name).await? == 0, || {
        "the second one's permit is free".into()
    })?;
    says("release", second.release().await)?;
    ensure(free(&process, &name).await? == 1, || {
        "the permit is not back".into()
    })
}

/// The twin adds one whatever became of the lease.
pub(crate) async fn a_release_that_ignores_expiry_is_caught(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let (process, _first, _second, id) = late(&redis, &name).await?;
    let mut outsider = redis.outsider().await;
    let twin = redis::Script::new(
        "redis.call('zrem', KEYS[2], ARGV[1]) return redis.call('incr', KEYS[1])",
    );
    let mut twin = twin.key(&name);
    let released: redis::RedisResult<i64> = twin
        .key(format!("{{{name}}}:timeout"))
        .arg(id)
        .invoke_async(&mut outsider)
        .await;
    released.map_err(|e| e.to_string())?;
    ensure(free(&process, &name).await? == 1, || {
        "the twin freed nothing, and the test shows nothing".into()
    })
}

pub(crate) async fn a_watchdog_keeps_a_permit(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let lease = Duration::from_secs(6);
    says("set", process.permits(&name).try_set_permits(1).await)?;
    let permit = one(&process, &name, Lease::Watchdog(lease)).await?;
    let beyond = leases(&redis, &name).await?[0].1 + lease.as_millis() as i64;
    let renewed = || async {
        leases(&redis, &name)
            .await
            .is_ok_and(|l| l.first().is_some_and(|l| l.1 > beyond))
    };
    until("the lease was renewed beyond its first end", renewed).await?;
    says("release", permit.release().await)
}

pub(crate) async fn ids_are_written_as_redisson_does(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    says("set", process.permits(&name).try_set_permits(2).await)?;
    let raw = one(&process, &name, LONG).await?;
    let id = leases(&redis, &name).await?.remove(0).0;
    ensure(id.len() == 16, || {
        format!("an id of 4.x has {} bytes", id.len())
    })?;
    says("release", raw.release().await)?;
    Ok(())
}

/// The lease is so long that only the undo can bring it back.
pub(crate) async fn an_unanswered_acquire_of_a_lease_comes_back(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let mute = Mute::to(redis.host()).await;
    let process = redis.process_at(&mute.address()).await;
    says("set", process.permits(&name).try_set_permits(1).await)?;
    says("warm", one(&process, &name, LONG).await?.release().await)?;
    mute.mute();
    let lost = process
        .permits(&name)
        .lease(Lease::Fixed(SOON * 10))
        .acquire(SOON)
        .await;
    ensure(matches!(lost, Err(LockError::Unavailable { .. })), || {
        format!("without an answer: {lost:?}")
    })?;
    let taken = leases(&redis, &name).await?.len();
    mute.heal().await;
    ensure(taken <= 1, || format!("{taken} leases"))?;
    let other = redis.process().await;
    until("the permit is back", || async {
        matches!(free(&other, &name).await, Ok(1))
    })
    .await
}
