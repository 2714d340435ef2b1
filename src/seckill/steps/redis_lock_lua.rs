#![doc = include_str!("redis_lock_lua.md")]

use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{
        Facts, Order, Ordered,
        simple_redis_lock::{self as lock, place_under},
    },
    section::{Point, Points, redis_polling::Stage},
    stock::Promise,
};
use oversell_lock::redis::Connection;
use redis::{RedisResult, Script};
use std::sync::LazyLock;

static UNLOCK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(include_str!(
        "../../stock/strategies/lua/delete_if_mine.lua"
    ))
});

pub(super) const STEP: Facts = Facts {
    course: "Lua脚本解决多条命令原子性问题",
    rank: Rank::After("redis-lock-owner"),
    promise: Promise::Lease,
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    let (key, owner) = (lock::key(ctx, order), order.job.owner(ctx).to_string());
    place_under(
        ctx,
        order,
        Scripted {
            key,
            owner,
            lease: lock::lease(order),
        },
    )
    .await
}

struct Scripted {
    key: String,
    owner: String,
    lease: u64,
}

impl Stage for Scripted {
    const OWNED: bool = true;

    fn key(&self) -> &str {
        &self.key
    }

    async fn try_lock(&self, redis: &mut Connection) -> RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg(&self.owner)
            .arg("NX")
            .arg("PX")
            .arg(self.lease);
        set.query_async(redis).await
    }

    async fn unlock(&self, redis: &mut Connection, points: &Points) -> RedisResult<bool> {
        points.at(Point::Compared).await;
        UNLOCK
            .key(&self.key)
            .arg(&self.owner)
            .invoke_async(redis)
            .await
    }
}
