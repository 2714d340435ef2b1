#![doc = include_str!("redis_setnx_lua.md")]

use crate::section::{
    Points, RedisTap, Unrenewed,
    redis_polling::{self as stage, Lock, Stage},
};
use crate::stock::prelude::*;
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
    let held = stage::lock(ctx, job, Scripted::lock(ctx, job)).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

pub(crate) struct Scripted;

impl Scripted {
    pub(crate) fn lock(ctx: &Ctx, job: &Job) -> Lock<Self> {
        Lock::new(ctx, job, "lock:redis-setnx-lua", stage::LEASE, Self)
    }
}

impl Stage for Scripted {
    const OWNED: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut RedisTap) -> RedisResult<bool> {
        redis::cmd("SET")
            .arg((&lock.key, &lock.owner, "NX", "PX", lock.lease))
            .query_async(redis)
            .await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut RedisTap, _: &Points) -> RedisResult<bool> {
        DELETE_IF_MINE
            .key(&lock.key)
            .arg(&lock.owner)
            .invoke_async(redis)
            .await
    }
}
