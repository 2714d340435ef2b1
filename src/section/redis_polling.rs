//! What the six hand-written Redis locks of §2.1 to §2.7, and two of `[004]`, share: polling, section, backstop.
//!
//! 1. [`lock`]: try; if the lock is taken, try again after the course's 50 ms (±50 %), as long as the job may wait.
//! 2. [`under`]: the section (read the key, write one less), then the unlock, which reports `kept` or `lost`.
//! 3. A caller that is cancelled at any `await`, or panics, unlocks in the background ([`Held`]).
//!
//! An attempt and an unlock each run in a task of their own, so that cancelling the caller leaves neither half done; a
//! lock acquired for a cancelled caller is dropped, which unlocks it. **What it cannot do**: clean up after a killed
//! process. What happens to the key then is the lesson of each stage. **What it costs**: a request to Redis every 50 ms
//! from each waiter; no waiter is notified, and which one gets the lock next is chance.
//!
//! Points for a replay: `taken` (the key is written, the caller not yet told), `refused`, `locked`, `read`,
//! `written`, `unlocked` (the unlock found its lock); in `redis-setnx-owner` also `checked`, in `redis-watchdog` `renew` and `renewed`.
//!
//! Next: `redis_setnx.rs`, the first stage.

use super::{Deducted, Job, LockState, Point, Points, poll, redis_key};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::redis::Connection;
use redis::RedisResult;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{runtime::Handle, task::JoinHandle};

/// The mean time between a waiter's attempts.
const POLL: Duration = Duration::from_millis(50);

/// §2.2: the lease of the stages that do not say otherwise.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// One lock of the course: how it is locked and unlocked.
pub(crate) trait Stage: Send + Sync + 'static {
    /// Whether the key names its owner: then an attempt without an answer is undone, too.
    const OWNED: bool;

    /// The lock's key.
    fn key(&self) -> &str;

    /// Tries once; true if the lock was acquired.
    fn try_lock(&self, redis: &mut Connection) -> impl Future<Output = RedisResult<bool>> + Send;

    /// Unlocks; false if the lock was no longer there.
    fn unlock(
        &self,
        redis: &mut Connection,
        at: &Points,
    ) -> impl Future<Output = RedisResult<bool>> + Send;
}

/// A held lock. Dropping it unlocks in the background.
pub(crate) struct Held<S: Stage> {
    ctx: Ctx,
    points: Points,
    stage: Option<Arc<S>>,
}

/// The key of a stage's lock, for this job's product.
pub(crate) fn key(ctx: &Ctx, job: &Job, name: &str) -> String {
    ctx.redis_key(&job.redis_name(name))
}

/// The lease of §2.2 to §2.5 in milliseconds: the requested one, else the course's.
pub(crate) fn lease(job: &Job) -> u64 {
    millis(job.request.lease.unwrap_or(LEASE))
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Acquires the lock: tries about every 50 ms as long as the job may wait, and at least once.
pub(crate) async fn lock<S: Stage>(ctx: &Ctx, job: &Job, stage: S) -> Result<Held<S>, Error> {
    let stage = Arc::new(stage);
    loop {
        if let Some(held) = try_once(ctx, job, &stage).await? {
            return Ok(held);
        }
        job.at(Point::Refused).await;
        poll::pause(job, POLL, || format!("lock {}", stage.key())).await?;
    }
}

/// Tries to take the lock once.
pub(crate) async fn try_once<S: Stage>(
    ctx: &Ctx,
    job: &Job,
    stage: &Arc<S>,
) -> Result<Option<Held<S>>, Error> {
    let tried = ctx.tasks.spawn(attempt(
        ctx.clone(),
        job.seen.points().clone(),
        Arc::clone(stage),
    ));
    tried.await.map_err(|e| Error::Internal(e.to_string()))?
}

async fn attempt<S: Stage>(
    ctx: Ctx,
    points: Points,
    stage: Arc<S>,
) -> Result<Option<Held<S>>, Error> {
    let mut redis = ctx.redis.connection();
    let mut held = Held {
        ctx,
        points,
        stage: Some(Arc::clone(&stage)),
    };
    let tried = stage.try_lock(&mut redis).await;
    // An attempt without an answer may have acquired it. Without an owner the key may belong to another.
    if matches!(tried, Ok(false)) || (tried.is_err() && !S::OWNED) {
        held.stage = None;
    }
    if !tried? {
        return Ok(None);
    }
    held.points.at(Point::Taken).await;
    Ok(Some(held))
}

/// Runs the section, then unlocks. A failed unlock does not undo a sale.
pub(crate) async fn under<S, F>(held: Held<S>, section: F) -> Result<Deducted, Error>
where
    S: Stage,
    F: Future<Output = Result<Deducted, Error>>,
{
    let outcome = section.await;
    let found = held.unlock().await;
    Ok(outcome?.unlocked(found))
}

/// The critical section: reads the key, stays for `hold_ms`, writes back one less.
pub(crate) async fn read_then_write(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    job.at(Point::Locked).await;
    let key = redis_key::of(ctx, job.request.stock_id);
    let mut redis = ctx.redis.connection();
    let count: Option<i64> = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
    let Some(count) = count else {
        return Err(redis_key::missing(ctx, job.request.stock_id).await);
    };
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.inside().await;
    job.tell(Point::Read, count).await;
    redis_key::answered(
        redis::cmd("SET")
            .arg(&key)
            .arg(count - 1)
            .exec_async(&mut redis)
            .await,
    )?;
    job.tell(Point::Written, count - 1).await;
    job.leave();
    Ok(Deducted {
        remaining: Some(count - 1),
        fence: None,
        retries: 0,
        lock: None,
    })
}

impl<S: Stage> Held<S> {
    /// Unlocks, and says whether the lock was still held; `None` if Redis did not answer.
    pub(crate) async fn unlock(mut self) -> Option<LockState> {
        self.unlock_in_background()?.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the unlock was interrupted");
            None
        })
    }

    fn unlock_in_background(&mut self) -> Option<JoinHandle<Option<LockState>>> {
        let stage = self.stage.take()?;
        let (mut redis, points) = (
            self.ctx.redis.connection(),
            std::mem::take(&mut self.points),
        );
        let unlock = async move {
            match stage.unlock(&mut redis, &points).await {
                Ok(true) => {
                    points.at(Point::Unlocked).await;
                    Some(LockState::Kept)
                }
                Ok(false) => {
                    tracing::warn!(lock = stage.key(), "the lock was lost before the unlock");
                    Some(LockState::Lost)
                }
                Err(error) => {
                    tracing::warn!(%error, lock = stage.key(), "not unlocked");
                    None
                }
            }
        };
        Some(
            self.ctx
                .tasks
                .spawn_on(unlock, &Handle::try_current().ok()?),
        )
    }
}

impl<S: Stage> Drop for Held<S> {
    fn drop(&mut self) {
        drop(self.unlock_in_background());
    }
}
