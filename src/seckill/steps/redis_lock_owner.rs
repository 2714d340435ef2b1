#![doc = include_str!("redis_lock_owner.md")]

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
use redis::RedisResult;

pub(super) const STEP: Facts = Facts {
    course: "解决Redis分布式锁误删问题",
    rank: Rank::After("redis-lock-fixed-id"),
    promise: Promise::Lease,
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    let (key, owner) = (lock::key(ctx, order), order.job.owner(ctx).to_string());
    place_under(
        ctx,
        order,
        Owned {
            key,
            owner,
            lease: lock::lease(order),
        },
    )
    .await
}

struct Owned {
    key: String,
    owner: String,
    lease: u64,
}

impl Stage for Owned {
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
        let holder: Option<String> = redis::cmd("GET").arg(&self.key).query_async(redis).await?;
        if holder.as_deref() != Some(self.owner.as_str()) {
            return Ok(false);
        }
        points.at(Point::Compared).await;
        redis::cmd("DEL").arg(&self.key).query_async(redis).await
    }
}
