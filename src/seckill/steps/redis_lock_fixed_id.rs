//! [002] 分布式锁版本一: a lock per user in Redis, for all instances; its value is the thread's id, and nobody looks at it.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. `SET lock:order:<user> 1 NX EX 1200`, once; it is there already: 不允许重复下单.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. `DEL` the lock.
//!
//! What it survives: any number of instances; a holder that dies (the lease ends). **What breaks it**: an order that takes
//! longer than the lease. The user's next order gets in, the late DEL deletes *its* lock (误删), and a third gets in too.
//!
//! Next: `redis_lock_owner.rs`, which looks whose lock it is.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{
        Order, Ordered, Step,
        simple_redis_lock::{self as lock, place_under},
    },
    section::{Points, redis_polling::Stage},
    stock::Promise,
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STEP: Step = Step {
    slug: "redis-lock-fixed-id",
    course: "分布式锁版本一",
    rank: Rank::After("user-mutex-in-tx"),
    promise: Promise::Lease,
    title: Bilingual {
        zh: "Redis 锁版本一：直接 DEL",
        en: "A lock in Redis, deleted unseen",
    },
    breaks: Bilingual {
        zh: "锁超时后误删别人的锁",
        en: "a late DEL deletes another's lock",
    },
    source: include_str!("redis_lock_fixed_id.rs"),
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
