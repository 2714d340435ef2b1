#![doc = include_str!("redis_lock_lua.md")]

use crate::seckill::*;
use crate::{
    seckill::simple_redis_lock::place_under_lock,
    section::{
        Points, lua,
        redis_polling::{Lock, LockCommands},
    },
};
use oversell_lock::redis::Connection;
use redis::{RedisResult, Script};
use std::sync::LazyLock;

/// Deletes the lock if its value is this owner's.
static UNLOCK: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("../../stock/strategies/lua/delete_if_mine.lua")));

pub(super) const STEP: StepSpec = StepSpec {
    course: "Lua脚本解决多条命令原子性问题",
    rank: Rank::After("redis-lock-owner"),
    promise: Promise::Lease,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Places the order under the user's key, which a script unlocks if it is its own.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    place_under_lock(ctx, order, SetnxWithScript).await
}

/// SET NX with lease and owner to lock; to unlock a script that compares and deletes in one step.
struct SetnxWithScript;

impl LockCommands for SetnxWithScript {
    const UNDOES_FAILED_ATTEMPTS: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SET").arg((&lock.key, &lock.owner, "NX", "PX", lock.lease)).query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, points: &Points) -> RedisResult<bool> {
        points.reach(Point::Compared).await;
        UNLOCK.key(&lock.key).arg(&lock.owner).invoke_async(redis).await
    }
}
