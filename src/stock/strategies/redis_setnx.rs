#![doc = include_str!("redis_setnx.md")]

use crate::section::{
    Points,
    redis_polling::{self, Lock, LockCommands},
};
use crate::stock::*;
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.1",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 1_700,
    names: &[Name::Redis("lock:redis-setnx")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under a key without a lease.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = Lock::new(ctx, job, "lock:redis-setnx", redis_polling::LEASE, PlainSetnx);
    let held = redis_polling::lock(ctx, job, lock).await?;
    redis_polling::run_then_release(held, redis_polling::read_then_write(ctx, job)).await
}

/// SETNX to lock, DEL to unlock.
struct PlainSetnx;

impl LockCommands for PlainSetnx {
    const UNDOES_FAILED_ATTEMPTS: bool = false;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SETNX").arg(&lock.key).arg("111").query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
