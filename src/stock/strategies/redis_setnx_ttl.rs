//! §2.2 The key ends by itself: `SET NX PX` writes it and its lease in one command.
//!
//! 1. `SET lock:redis-setnx-ttl 111 NX PX 3000`; where it is there already, try again in about 50 ms.
//! 2. Read the key `stock`, then write one less.
//! 3. `DEL` the lock.
//!
//! What it survives: a holder that dies; the others go on once its lease has ended. (SETNX and then EXPIRE would not
//! do: who dies between the two leaves a key for ever.) **What breaks it**: a job longer than the lease. Another gets
//! in, and the late DEL deletes *its* lock, so that a third gets in too. DEL cannot tell whose key it was: only one that
//! finds no key at all says `lock: lost`.
//!
//! Next: `redis_setnx_owner.rs`, which looks whose key it is.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{
        Deducted, Job, Name, Points, Unrenewed,
        redis_polling::{self as stage, Stage},
    },
    server::Server,
    stock::{Promise, Store, Strategy},
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-setnx-ttl",
    chapter: "2.2",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_700,
    names: &[Name::RedisFor("lock:redis-setnx-ttl", Unrenewed::Course)],
    title: Bilingual {
        zh: "SET NX PX：锁会自己过期",
        en: "SET NX PX: a lock that ends by itself",
    },
    breaks: Bilingual {
        zh: "迟到的删除会删掉别人的锁",
        en: "a late DEL deletes another's lock",
    },
    source: include_str!("redis_setnx_ttl.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = Ttl {
        key: stage::key(ctx, job, "lock:redis-setnx-ttl"),
        lease: stage::lease(job),
    };
    let held = stage::lock(ctx, job, lock).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

struct Ttl {
    key: String,
    lease: u64,
}

impl Stage for Ttl {
    const OWNED: bool = false;

    fn key(&self) -> &str {
        &self.key
    }

    async fn try_lock(&self, redis: &mut Connection) -> RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg("111")
            .arg("NX")
            .arg("PX")
            .arg(self.lease);
        set.query_async(redis).await
    }

    async fn unlock(&self, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        redis::cmd("DEL").arg(&self.key).query_async(redis).await
    }
}
