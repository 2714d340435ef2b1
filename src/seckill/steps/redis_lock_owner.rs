#![doc = include_str!("redis_lock_owner.md")]

use crate::seckill::*;
use crate::{
    seckill::simple_redis_lock::place_under_lock,
    section::{
        Points,
        redis_polling::{Lock, LockCommands},
    },
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STEP: StepSpec = StepSpec {
    course: "解决Redis分布式锁误删问题",
    rank: Rank::After("redis-lock-fixed-id"),
    promise: Promise::Lease,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Places the order under the user's key, which GET and DEL unlock if it is its own.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    place_under_lock(ctx, order, SetnxWithOwner).await
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
        points.reach(Point::Compared).await;
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
