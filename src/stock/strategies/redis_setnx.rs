#![doc = include_str!("redis_setnx.md")]

use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{
        Deducted, Job, Name, Points,
        redis_polling::{self as stage, Stage},
    },
    server::Server,
    stock::{Facts, Promise, Store},
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: Facts = Facts {
    chapter: "2.1",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 1_700,
    names: &[Name::Redis("lock:redis-setnx")],
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
