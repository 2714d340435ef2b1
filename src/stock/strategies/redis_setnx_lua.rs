#![doc = include_str!("redis_setnx_lua.md")]

use crate::section::{
    FixedLease, Points, lua,
    redis_polling::{self, Lock, LockCommands},
};
use crate::stock::*;
use oversell_lock::redis::Connection;
use redis::{RedisResult, Script};
use std::sync::LazyLock;

/// Deletes the lock if its value is this owner's.
static DELETE_IF_MINE: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("lua/delete_if_mine.lua")));

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.5",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_600,
    names: &[Name::RedisFor("lock:redis-setnx-lua", FixedLease::Course)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under a key with lease and owner, which a script deletes if it is its own.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let held = redis_polling::lock(ctx, job, SetnxWithScript::lock(ctx, job)).await?;
    redis_polling::run_then_release(held, redis_polling::read_then_write(ctx, job)).await
}

/// SET NX with lease and owner to lock; to unlock a script that compares and deletes in one step.
pub(crate) struct SetnxWithScript;

impl SetnxWithScript {
    /// The lock of this strategy for the job's product.
    pub(crate) fn lock(ctx: &Ctx, job: &Job) -> Lock<Self> {
        Lock::new(ctx, job, "lock:redis-setnx-lua", redis_polling::LEASE, Self)
    }
}

impl LockCommands for SetnxWithScript {
    const UNDOES_FAILED_ATTEMPTS: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SET").arg((&lock.key, &lock.owner, "NX", "PX", lock.lease)).query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        DELETE_IF_MINE.key(&lock.key).arg(&lock.owner).invoke_async(redis).await
    }
}
