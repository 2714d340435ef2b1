#![doc = include_str!("redis_lock_fixed_id.md")]

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
    course: "分布式锁版本一",
    rank: Rank::After("user-mutex-in-tx"),
    promise: Promise::Lease,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Places the order under the user's key, which names no owner.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    place_under_lock(ctx, order, SetnxWithFixedId).await
}

/// SET NX with a lease and the value 1 to lock, DEL to unlock, whoever's the key is by then.
struct SetnxWithFixedId;

impl LockCommands for SetnxWithFixedId {
    const UNDOES_FAILED_ATTEMPTS: bool = false;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SET").arg((&lock.key, 1, "NX", "PX", lock.lease)).query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
