//! §2.6 A hash that counts: whoever has the lock may take it again.
//!
//! 1. `lua/enter.lua` on the hash `lock:redis-reentrant`: free, or ours already: one hold more, and the lease of 30 s anew.
//! 2. The section calls a method that takes the same lock again (the course's `a()` that calls `b()`): it gets in.
//! 3. Read the key `stock`, then write one less.
//! 4. `lua/leave.lua`, once for each hold: the last one deletes the hash.
//!
//! The owner is the request, not the thread: `<process uuid>:<number>`.
//!
//! What it survives: re-entry, and all that `redis_setnx_lua.rs` does. **What breaks it**: a job longer than its lease
//! loses the lock in the middle, and another works beside it (`lease_ms=1000&hold_ms=3000`); its unlock says so.
//!
//! Next: `redis_watchdog.rs`, which renews the lease.

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
use redis::{RedisResult, Script};
use std::sync::LazyLock;

static ENTER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/enter.lua")));
static LEAVE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/leave.lua")));

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-reentrant",
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
    title: Bilingual {
        zh: "可重入锁：Hash 记下重入次数",
        en: "Re-entrant: a hash counts its owner's holds",
    },
    breaks: Bilingual {
        zh: "业务比租约长，锁就中途丢了",
        en: "a job longer than its lease",
    },
    source: include_str!("redis_reentrant.rs"),
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
