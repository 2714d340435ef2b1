#![doc = include_str!("redis_setnx_ttl.md")]

use crate::section::{
    FixedLease, Points,
    redis_polling::{self, Lock, LockCommands},
};
use crate::stock::*;
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.2",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_700,
    names: &[Name::RedisFor("lock:redis-setnx-ttl", FixedLease::Course)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under a key with a lease, and deletes the key whoever's it is by then.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = Lock::new(ctx, job, "lock:redis-setnx-ttl", redis_polling::LEASE, SetnxWithLease);
    let held = redis_polling::lock(ctx, job, lock).await?;
    redis_polling::run_then_release(held, redis_polling::read_then_write(ctx, job)).await
}

/// SET NX with a lease to lock, DEL to unlock, whoever's the key is by then.
struct SetnxWithLease;

impl LockCommands for SetnxWithLease {
    const UNDOES_FAILED_ATTEMPTS: bool = false;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SET").arg((&lock.key, "111", "NX", "PX", lock.lease)).query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
