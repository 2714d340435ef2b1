#![doc = include_str!("redis_setnx_owner.md")]

use crate::section::{
    FixedLease, Points,
    redis_polling::{self, Lock, LockCommands},
};
use crate::stock::*;
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.3",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_200,
    names: &[Name::RedisFor("lock:redis-setnx-owner", FixedLease::Course)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under a key with lease and owner, and deletes it if GET says that it is its own.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = Lock::new(ctx, job, "lock:redis-setnx-owner", redis_polling::LEASE, SetnxWithOwner);
    let held = redis_polling::lock(ctx, job, lock).await?;
    redis_polling::run_then_release(held, redis_polling::read_then_write(ctx, job)).await
}

/// SET NX with lease and owner to lock; to unlock GET, a comparison here, then DEL.
struct SetnxWithOwner;

impl LockCommands for SetnxWithOwner {
    const UNDOES_FAILED_ATTEMPTS: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SET").arg((&lock.key, &lock.owner, "NX", "PX", lock.lease)).query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, points: &Points) -> RedisResult<bool> {
        let holder: Option<String> = redis::cmd("GET").arg(&lock.key).query_async(redis).await?;
        if holder.as_deref() != Some(lock.owner.as_str()) {
            return Ok(false);
        }
        points.reach_with(Point::Checked, &lock.owner).await;
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
