//! [002] 解决Redis分布式锁误删问题: the lock's value says whose it is (uuid of the process, number of the request), and the unlock
//! looks before it deletes.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. `SET lock:order:<user> <owner> NX EX 1200`, once; it is there already: 不允许重复下单.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. `GET` the lock; `DEL` it if it is still ours.
//!
//! What it survives: an order longer than the lease no longer deletes another's lock, nearly always. **What breaks it**: GET
//! and DEL are two commands (原子性问题). A lease that ends between them lets the next order in, whose lock is deleted.
//!
//! Next: `redis_lock_lua.rs`, which makes one of the two.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{
        Order, Ordered, Step,
        simple_redis_lock::{self as lock, place_under},
    },
    section::{Point, Points, redis_polling::Stage},
    stock::Promise,
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STEP: Step = Step {
    slug: "redis-lock-owner",
    course: "解决Redis分布式锁误删问题",
    rank: Rank::After("redis-lock-fixed-id"),
    promise: Promise::Lease,
    title: Bilingual {
        zh: "释放前先看锁是谁的",
        en: "The unlock looks whose lock it is",
    },
    breaks: Bilingual {
        zh: "判断与删除之间，锁可能已换人",
        en: "the lease that ends between GET and DEL",
    },
    source: include_str!("redis_lock_owner.rs"),
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
