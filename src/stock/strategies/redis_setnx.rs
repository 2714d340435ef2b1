//! §2.1 The simplest lock in Redis: SETNX writes a key if there is none, and only one can.
//!
//! 1. `SETNX lock:redis-setnx 111`; where it is there already, try again in about 50 ms.
//! 2. Read the key `stock`, then write one less.
//! 3. `DEL` the lock.
//!
//! What it survives: any number of instances; a client that hangs up (this process still deletes). **What breaks it**:
//! a holder that dies, or a SETNX whose answer is lost: the key stays for ever, and nobody gets in.
//!
//! Next: `redis_setnx_ttl.rs`, whose key ends by itself.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{
        Deducted, Job, Name, Points,
        redis_polling::{self as stage, Stage},
    },
    server::Server,
    stock::{Promise, Store, Strategy},
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-setnx",
    chapter: "2.1",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 1_700,
    names: &[Name::Redis("lock:redis-setnx")],
    title: Bilingual {
        zh: "SETNX：键不存在才写得进去",
        en: "SETNX: who writes the key first has the lock",
    },
    breaks: Bilingual {
        zh: "持有者死了，键永远在",
        en: "a holder that dies leaves its key for ever",
    },
    source: include_str!("redis_setnx.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = Setnx {
        key: stage::key(ctx, job, "lock:redis-setnx"),
    };
    let held = stage::lock(ctx, job, lock).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

struct Setnx {
    key: String,
}

impl Stage for Setnx {
    const OWNED: bool = false;

    fn key(&self) -> &str {
        &self.key
    }

    async fn try_lock(&self, redis: &mut Connection) -> RedisResult<bool> {
        redis::cmd("SETNX")
            .arg(&self.key)
            .arg("111")
            .query_async(redis)
            .await
    }

    async fn unlock(&self, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&self.key).query_async(redis).await
    }
}
