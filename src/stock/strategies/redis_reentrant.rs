#![doc = include_str!("redis_reentrant.md")]

use crate::section::{
    FixedLease, Points, lua,
    redis_polling::{self, Lock, LockCommands},
};
use crate::stock::*;
use oversell_lock::redis::Connection;
use redis::{RedisResult, Script};
use std::sync::LazyLock;

/// Takes the lock, or one more hold of it for its owner.
static ENTER: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("lua/enter.lua")));
/// Gives one hold back; the last one frees the lock.
static LEAVE: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("lua/leave.lua")));

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.6",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 890,
    names: &[Name::RedisFor("lock:redis-reentrant", FixedLease::Configured)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes the lock, and inside takes it again and sells.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let held = redis_polling::lock(ctx, job, ReentrantScripts::lock(ctx, job, "lock:redis-reentrant")).await?;
    redis_polling::run_then_release(held, deduct_again(ctx, job)).await
}

/// Takes the lock a second time as the same owner, sells under it, and gives back this inner hold alone.
async fn deduct_again(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let held = redis_polling::lock(ctx, job, ReentrantScripts::lock(ctx, job, "lock:redis-reentrant")).await?;
    redis_polling::run_then_release(held, redis_polling::read_then_write(ctx, job)).await
}

/// The commands of a lock that is a hash of its owner and the count of its holds: a script enters it, another leaves it.
pub(crate) struct ReentrantScripts;

impl ReentrantScripts {
    /// The lock of this name for the job's product, with the requested lease, else the configured one.
    pub(crate) fn lock(ctx: &Ctx, job: &Job, name: &str) -> Lock<Self> {
        Lock::new(ctx, job, name, job.lease(ctx), Self)
    }
}

impl LockCommands for ReentrantScripts {
    const UNDOES_FAILED_ATTEMPTS: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        ENTER.key(&lock.key).arg(&lock.owner).arg(lock.lease).invoke_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        LEAVE.key(&lock.key).arg(&lock.owner).invoke_async(redis).await
    }
}
