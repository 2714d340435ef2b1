//! Shared by the hand-written Redis locks, six of §2.1 to §2.7, a student's, three of `[002]` and two of `[004]`: polling,
//! section, backstop.
//!
//! 1. [`lock`]: try; if the lock is taken, try again after the course's 50 ms (±50 %), as long as the job may wait.
//! 2. [`run_then_release`]: the section (read the key, write one less), then the unlock, which reports `kept` or `lost`.
//! 3. A caller that is cancelled at any `await`, or panics, unlocks in the background ([`LockGuard`]).
//!
//! An attempt and an unlock each run in a task of their own, so that cancelling the caller leaves neither half done; a
//! lock acquired for a cancelled caller is dropped, which unlocks it. **What it cannot do**: clean up after a killed
//! process. What happens to the key then is the lesson of each stage. **What it costs**: a request to Redis every 50 ms
//! from each waiter; no waiter is notified, and which one gets the lock next is chance.
//!
//! Points for a replay: `taken` (the key is written, the caller not yet told), `refused`, `locked`, `read`, `written`,
//! `unlocked` (the unlock found its lock); in `redis-setnx-owner` also `checked`, in `redis-watchdog` `renew`, `renewed`.
//!
//! Next: `redis_setnx.rs`, the first stage.

use super::{Deduction, Job, LockState, Point, Points, poll, redis_key};
use crate::{ctx::Ctx, error::Error, section::backstop::Backstop};
use oversell_lock::redis::{Connection, RedisClient};
use redis::RedisResult;
use std::{future::Future, sync::Arc, time::Duration};

/// The course's 50 ms: the mean time between a waiter's attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// §2.2: the default lease of the stages.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// A lock of the course as one job uses it: its key, owner and lease, and the commands for them. A [`LockGuard`] holds it.
pub(crate) struct Lock<S> {
    pub(crate) key: String,
    /// The owner in the value, if the value names one.
    pub(crate) owner: String,
    /// The lease in milliseconds.
    pub(crate) lease: u64,
    pub(crate) commands: S,
}

/// The commands that lock and unlock a lock of the course. Each hand-written lock implements it on a type of its own.
pub(crate) trait LockCommands: Sized + Send + Sync + 'static {
    /// Whether the value names the owner. Only then is an attempt without an answer undone.
    const UNDOES_FAILED_ATTEMPTS: bool;

    /// The Redis that has the lock; the main one unless overridden.
    fn client(ctx: &Ctx) -> &RedisClient {
        &ctx.redis
    }

    /// Tries once; true if the lock was acquired.
    fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> impl Future<Output = RedisResult<bool>> + Send;

    /// Unlocks; false if the lock was gone or, if its value names the owner, is another's.
    fn unlock(lock: &Lock<Self>, redis: &mut Connection, at: &Points) -> impl Future<Output = RedisResult<bool>> + Send;
}

/// A held lock. Dropping it unlocks in the background.
pub(crate) struct LockGuard(Backstop<Option<LockState>>);

impl<S: LockCommands> Lock<S> {
    /// The lock of this name for the job's product. Its lease is the requested one, else `lease`.
    pub(crate) fn new(ctx: &Ctx, job: &Job, name: &str, lease: Duration, commands: S) -> Self {
        Self::for_all_products(ctx, job, &job.redis_name(name), lease, commands)
    }

    /// As [`new`](Self::new), but the name is not of a product; the configured prefix stands before it all the same.
    pub(crate) fn for_all_products(ctx: &Ctx, job: &Job, name: &str, lease: Duration, commands: S) -> Self {
        let lease = job.request.lease.unwrap_or(lease).as_millis();
        Self {
            key: ctx.redis_key(name),
            owner: job.owner(ctx).to_string(),
            lease: u64::try_from(lease).unwrap_or(u64::MAX),
            commands,
        }
    }
}

/// Acquires the lock: tries about every 50 ms as long as the job may wait, and at least once; then fails with
/// [`Error::Timeout`]. A try that fails ends it at once.
pub(crate) async fn lock<S: LockCommands>(ctx: &Ctx, job: &Job, lock: Lock<S>) -> Result<LockGuard, Error> {
    let lock = Arc::new(lock);
    loop {
        if let Some(held) = try_once(ctx, job, &lock).await? {
            return Ok(held);
        }
        job.reach(Point::Refused).await;
        poll::pause_before_retry(job, POLL_INTERVAL, || format!("lock {}", lock.key)).await?;
    }
}

/// Tries once; `None` if the lock is taken: the caller reports `refused`. If the caller is cancelled, the attempt goes on by
/// itself, and a lock that it acquires is released. An attempt that fails is undone only if the lock names its owner.
pub(crate) async fn try_once<S: LockCommands>(ctx: &Ctx, job: &Job, lock: &Arc<Lock<S>>) -> Result<Option<LockGuard>, Error> {
    let tried = ctx.tasks.spawn(attempt(ctx.clone(), job.observation.points().clone(), Arc::clone(lock)));
    tried.await.map_err(|e| Error::Internal(e.to_string()))?
}

/// One attempt, undone in the background if it is dropped. One that fails is undone only if the lock names its owner.
async fn attempt<S: LockCommands>(ctx: Ctx, points: Points, lock: Arc<Lock<S>>) -> Result<Option<LockGuard>, Error> {
    let mut redis = S::client(&ctx).connection();
    let held = Backstop::new(&ctx, unlock(redis.clone(), Arc::clone(&lock), points.clone()));
    let tried = S::try_lock(&lock, &mut redis).await;
    // A failed attempt may have acquired it. Without an owner the key may belong to another.
    if matches!(tried, Ok(false)) || (tried.is_err() && !S::UNDOES_FAILED_ATTEMPTS) {
        held.cancel();
        return tried.map(|_| None).map_err(Error::from);
    }
    tried?;
    points.reach(Point::Taken).await;
    Ok(Some(LockGuard(held)))
}

/// Runs the section, then unlocks, after an error of the section too. A failed unlock does not undo a sale.
pub(crate) async fn run_then_release(
    held: LockGuard,
    section: impl Future<Output = Result<Deduction, Error>>,
) -> Result<Deduction, Error> {
    let outcome = section.await;
    let found = held.unlock().await;
    Ok(outcome?.with_lock_state(found))
}

/// The critical section: reads the key, stays for `hold_ms`, writes back one less.
pub(crate) async fn read_then_write(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    job.reach(Point::Locked).await;
    let key = redis_key::stock_key(ctx, job.request.stock_id);
    let mut redis = ctx.redis.connection();
    let count: Option<i64> = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
    let Some(count) = count else {
        return Err(redis_key::missing_key_error(ctx, job.request.stock_id).await);
    };
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.enter_and_stay().await;
    job.reach_with(Point::Read, count).await;
    let set = redis::cmd("SET").arg(&key).arg(count - 1).exec_async(&mut redis).await;
    redis_key::classify_write(set, redis.has_sent())?;
    job.reach_with(Point::Written, count - 1).await;
    job.leave();
    Ok(Deduction::remaining(count - 1))
}

impl LockGuard {
    /// Unlocks. Returns whether the lock was still held; `None` if Redis did not answer.
    pub(crate) async fn unlock(self) -> Option<LockState> {
        self.0.run_now().await.flatten()
    }
}

/// Unlocks. If Redis fails, that is logged and the result is `None`.
async fn unlock<S: LockCommands>(mut redis: Connection, lock: Arc<Lock<S>>, points: Points) -> Option<LockState> {
    match S::unlock(&lock, &mut redis, &points).await {
        Ok(true) => {
            points.reach(Point::Unlocked).await;
            Some(LockState::Kept)
        }
        Ok(false) => {
            tracing::warn!(lock = lock.key, "the lock was lost before the unlock");
            Some(LockState::Lost)
        }
        Err(error) => {
            tracing::warn!(%error, lock = lock.key, "the unlock failed; the key stays until its lease ends, if it has one");
            None
        }
    }
}
