//! [002] Lua脚本解决多条命令原子性问题: compare and delete in one script; Redis lets nobody come between its lines.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. `SET lock:order:<user> <owner> NX EX 1200`, once; it is there already: 不允许重复下单.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. The script `stock/strategies/lua/delete_if_mine.lua` (the text calls it `unlock.lua`): it deletes the lock if it is still ours.
//!
//! What it survives: a late unlock, at whatever moment the lease ends. **What breaks it**: an order longer than its lease is
//! still not alone (锁不住), and so the user's next one gets in beside it; no re-entry, no retry, no renewal.
//!
//! Next: `redis_rlock.rs`, the lock of Redisson, which is renewed.

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
use redis::{RedisResult, Script};
use std::sync::LazyLock;

static UNLOCK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(include_str!(
        "../../stock/strategies/lua/delete_if_mine.lua"
    ))
});

pub(super) const STEP: Step = Step {
    slug: "redis-lock-lua",
    course: "Lua脚本解决多条命令原子性问题",
    rank: Rank::After("redis-lock-owner"),
    promise: Promise::Lease,
    title: Bilingual {
        zh: "Lua 脚本：判断并删除，一步完成",
        en: "Compare and delete as one script",
    },
    breaks: Bilingual {
        zh: "业务超过租约：锁不住",
        en: "an order longer than its lease is not alone",
    },
    source: include_str!("redis_lock_lua.rs"),
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
