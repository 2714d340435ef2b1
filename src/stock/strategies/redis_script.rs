//! §2.4 One script: Redis checks and takes in one step, as `single-update` lets MySQL do.
//!
//! 1. Send the script (by its digest, once Redis knows it): read, refuse if nothing is left, else count down.
//!
//! Redis runs one script at a time and nothing between its lines, so nobody is locked out and nobody tries again.
//!
//! What it survives: any number of instances, holders that die (nobody holds anything). **What breaks it**: a Redis that
//! loses its last second of writes; and the decision must fit into a script on one Redis.
//!
//! Next: `redis_setnx_lua.rs`: the section runs outside of Redis and needs a lock, whose two commands become a script.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, redis_key},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use redis::Script;
use std::sync::LazyLock;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-script",
    chapter: "2.4",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    pace: 20_000,
    names: &[],
    needs: &[Server::Redis],
    title: Bilingual {
        zh: "一个 Lua 脚本：判断和扣减一步完成",
        en: "One script: checks and takes in one step",
    },
    breaks: Bilingual {
        zh: "不会断；但判断必须写得进脚本",
        en: "nothing; but the decision must fit into a script",
    },
    source: include_str!("redis_script.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

const SOLD_OUT: i64 = -1;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/take.lua")));

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let since = job.inside().await;
    let key = redis_key::of(ctx, job.request.stock_id);
    let left: Option<i64> = redis_key::answered(
        TAKE.key(key)
            .invoke_async(&mut ctx.redis.connection())
            .await,
    )?;
    match job.tried(since, left) {
        None => Err(redis_key::missing(ctx, job.request.stock_id).await),
        Some(SOLD_OUT) => Err(Error::SoldOut),
        Some(left) => Ok(Deducted {
            remaining: Some(left),
            fence: None,
            retries: 0,
            lock: None,
        }),
    }
}
