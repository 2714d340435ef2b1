#![doc = include_str!("redis_setnx_lua.md")]

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
use redis::{RedisResult, Script};
use std::sync::LazyLock;

static DELETE_IF_MINE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/delete_if_mine.lua")));

pub(super) const STRATEGY: Facts = Facts {
    chapter: "2.5",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_600,
    names: &[Name::RedisFor("lock:redis-setnx-lua", Unrenewed::Course)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let held = stage::lock(ctx, job, Scripted::new(ctx, job)).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

pub(crate) struct Scripted {
    key: String,
    owner: String,
    lease: u64,
}

impl Scripted {
    pub(crate) fn new(ctx: &Ctx, job: &Job) -> Self {
        let (key, owner) = (
            stage::key(ctx, job, "lock:redis-setnx-lua"),
            job.owner(ctx).to_string(),
        );
        Self {
            key,
            owner,
            lease: stage::lease(job),
        }
    }
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

    async fn unlock(&self, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        DELETE_IF_MINE
            .key(&self.key)
            .arg(&self.owner)
            .invoke_async(redis)
            .await
    }
}
