#![doc = include_str!("redis_setnx_ttl.md")]

use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{
        Deducted, Job, Name, Points, Unrenewed,
        redis_polling::{self as stage, Stage},
    },
    server::Server,
    stock::{Facts, Promise, Store},
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: Facts = Facts {
    chapter: "2.2",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_700,
    names: &[Name::RedisFor("lock:redis-setnx-ttl", Unrenewed::Course)],
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
