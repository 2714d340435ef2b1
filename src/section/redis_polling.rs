//! What the six hand-written Redis locks of §2.1 to §2.7, and two of `[004]`, share: polling, section, backstop.
//!
//! 1. [`lock`]: try, and where another has it, try again after the course's 50 ms (±50 %), as long as the job may wait.
//! 2. [`under`]: the section (read the key, write one less), then the unlock, and what it found: `kept` or `lost`.
//! 3. A caller that goes away at any `await`, or panics, unlocks in the background ([`Held`]).
//!
//! A try and an unlock each run in a task of their own, so that nobody who goes away leaves one half done; what a try
//! took that nobody wants any more is dropped, and so unlocked. **What it cannot do**: run in a process that was
//! killed. What becomes of the key then is each stage's lesson. **What it costs**: a request to Redis every 50 ms from each
//! who waits; nobody is told that the lock is free, and who comes first then is chance.
//!
//! Points for a replay: `taken` (the key is written, and the caller does not know yet), `refused`, `locked`, `read`,
//! `written`, `unlocked` (something was given back); in `redis-setnx-owner` also `checked`, in `redis-watchdog` `renew` and `renewed`.
//!
//! Next: `redis_setnx.rs`, the first stage.

use super::{Deducted, Job, LockState, Point, Points, poll, redis_key};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::redis::Connection;
use redis::RedisResult;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{runtime::Handle, task::JoinHandle};

/// How often who waits tries again, on average.
const POLL: Duration = Duration::from_millis(50);

/// §2.2: the lease of the stages that do not say otherwise.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// One lock of the course: how it is taken, and how it is given back.
pub(crate) trait Stage: Send + Sync + 'static {
    /// Whether it knows its own key: then what an unanswered try may have taken is given back too.
    const OWNED: bool;

    /// The lock's key.
    fn key(&self) -> &str;

    /// One try: whether it is had.
    fn try_lock(&self, redis: &mut Connection) -> impl Future<Output = RedisResult<bool>> + Send;

    /// Gives it back: whether there was anything to give back.
    fn unlock(
        &self,
        redis: &mut Connection,
        at: &Points,
    ) -> impl Future<Output = RedisResult<bool>> + Send;
}

/// A lock that is held. Dropped, it is unlocked in the background.
pub(crate) struct Held<S: Stage> {
    ctx: Ctx,
    points: Points,
    stage: Option<Arc<S>>,
}

/// The key of a stage's lock, for this job's product.
pub(crate) fn key(ctx: &Ctx, job: &Job, name: &str) -> String {
    ctx.redis_key(&job.redis_name(name))
}

/// The lease of §2.2 to §2.5 in milliseconds: the one that was asked for, else the course's.
pub(crate) fn lease(job: &Job) -> u64 {
    millis(job.request.lease.unwrap_or(LEASE))
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Takes the lock, trying every 50 ms or so as long as the job may wait, and at least once.
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
    // A try without an answer may have taken it. Without an owner nobody can tell, and the key may be another's.
    if matches!(tried, Ok(false)) || (tried.is_err() && !S::OWNED) {
        held.stage = None;
    }
    if !tried? {
        return Ok(None);
    }
    held.points.at(Point::Taken).await;
    Ok(Some(held))
}

/// Runs what is done under the lock, and unlocks. What is sold is sold, however the unlock ends.
pub(crate) async fn under<S, F>(held: Held<S>, section: F) -> Result<Deducted, Error>
where
    S: Stage,
    F: Future<Output = Result<Deducted, Error>>,
{
    let outcome = section.await;
    let found = held.unlock().await;
    Ok(outcome?.unlocked(found))
}

/// The critical section: reads the key, stays as long as was asked, writes back one less.
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
    /// What the unlock found of the lock; none where Redis did not say.
    pub(crate) async fn unlock(mut self) -> Option<LockState> {
        self.unlock_in_background()?.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the unlock was cut short");
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
