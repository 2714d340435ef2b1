#![doc = include_str!("redis_lock_fixed_id.md")]

use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{
        Facts, Order, Ordered,
        simple_redis_lock::{self as lock, place_under},
    },
    section::{Points, redis_polling::Stage},
    stock::Promise,
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STEP: Facts = Facts {
    course: "分布式锁版本一",
    rank: Rank::After("user-mutex-in-tx"),
    promise: Promise::Lease,
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    place_under(
        ctx,
        order,
        FixedId {
            key: lock::key(ctx, order),
            lease: lock::lease(order),
        },
    )
    .await
}

struct FixedId {
    key: String,
    lease: u64,
}

impl Stage for FixedId {
    const OWNED: bool = false;

    fn key(&self) -> &str {
        &self.key
    }

    async fn try_lock(&self, redis: &mut Connection) -> RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg(1)
            .arg("NX")
            .arg("PX")
            .arg(self.lease);
        set.query_async(redis).await
    }

    async fn unlock(&self, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&self.key).query_async(redis).await
    }
}
