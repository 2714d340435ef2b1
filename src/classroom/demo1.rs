//! `[004]` demo1: the lock is written out at the place that needs it.
//!
//! 1. `SET demo1LockKey demo1LockValue NX PX 10000`; where it is there already, again in about 50 ms.
//! 2. Five seconds of work.
//! 3. `DEL demo1LockKey`, whatever became of the work.
//!
//! What it survives: a holder that dies; its key ends by itself. **What breaks it**: work longer than the lease. Another gets
//! in, and the late DEL deletes *its* key, since the value is everybody's and nobody looks at it. And the next place that
//! needs a lock writes all of it again.
//!
//! Next: `demo2.rs`, the lock as an object.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{
        Job, LockState, Name, Point, Points,
        redis_polling::{self, Lock, LockCommands},
    },
};
use oversell_lock::redis::Connection;
use redis::RedisResult;
use std::time::Duration;

const KEY: &str = "demo1LockKey";
/// The value that every holder writes.
const VALUE: &str = "demo1LockValue";

/// The names that the lesson writes, and a reset clears.
pub(super) const NAMES: &[Name] = &[Name::Redis(KEY)];

/// The lease that the text gives all four locks: twice the work.
pub const LEASE: Duration = Duration::from_secs(10);

/// The work that the text gives all four locks.
pub const WORK_TIME: Duration = Duration::from_secs(5);

/// Takes the lock, stays as long as the job says, and deletes its key, whoever's it is by then. Returns whether the key was
/// still there; `None` if Redis did not answer the DEL.
/// Errors: [`Error::Timeout`] if others had it for all of the job's wait, [`Error::Unavailable`] if Redis is down.
/// Cancel safety: dropping it gives the lock back in the background.
pub async fn visit(ctx: &Ctx, job: &Job) -> Result<Option<LockState>, Error> {
    let lock = Lock::new(ctx, job, KEY, LEASE, Demo1);
    let held = redis_polling::lock(ctx, job, lock).await?;
    job.enter_and_stay().await;
    job.reach(Point::Worked).await;
    job.leave();
    Ok(held.unlock().await)
}

/// The lock of the first demo: SET NX with a lease, then DEL.
struct Demo1;

impl LockCommands for Demo1 {
    const UNDOES_FAILED_ATTEMPTS: bool = false;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SET").arg((&lock.key, VALUE, "NX", "PX", lock.lease)).query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
