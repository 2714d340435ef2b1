#![doc = include_str!("redis_reentrant.md")]

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

static ENTER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/enter.lua")));
static LEAVE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/leave.lua")));

pub(super) const STRATEGY: Facts = Facts {
    chapter: "2.6",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 890,
    names: &[Name::RedisFor(
        "lock:redis-reentrant",
        Unrenewed::Configured,
    )],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let held = stage::lock(ctx, job, Reentrant::new(ctx, job, "lock:redis-reentrant")).await?;
    stage::under(held, again(ctx, job)).await
}

async fn again(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let held = stage::lock(ctx, job, Reentrant::new(ctx, job, "lock:redis-reentrant")).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

pub(crate) struct Reentrant {
    pub(crate) key: String,
    pub(super) owner: String,
    pub(crate) lease: u64,
}

impl Reentrant {
    pub(crate) fn new(ctx: &Ctx, job: &Job, name: &str) -> Self {
        let lease = stage::millis(job.leased(ctx));
        Self {
            key: stage::key(ctx, job, name),
            owner: job.owner(ctx).to_string(),
            lease,
        }
    }
}

impl Stage for Reentrant {
    const OWNED: bool = true;

    fn key(&self) -> &str {
        &self.key
    }

    async fn try_lock(&self, redis: &mut Connection) -> RedisResult<bool> {
        ENTER
            .key(&self.key)
            .arg(&self.owner)
            .arg(self.lease)
            .invoke_async(redis)
            .await
    }

    async fn unlock(&self, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        LEAVE
            .key(&self.key)
            .arg(&self.owner)
            .invoke_async(redis)
            .await
    }
}
