//! §2.5 Check and delete in one script: Redis lets nobody come between its lines.
//!
//! 1. `SET lock:redis-setnx-lua <owner> NX PX 3000`; where it is there already, try again in about 50 ms.
//! 2. Read the key `stock`, then write one less.
//! 3. `EVALSHA` of `lua/delete_if_mine.lua`: compare the owner and delete.
//!
//! What it survives: a late unlock, at whatever moment the lease ends. **What breaks it**: an owner that takes its own
//! lock again waits for itself; and a job longer than the lease is still not alone.
//!
//! Next: `redis_reentrant.rs`, which counts its owner's holds.

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

static DELETE_IF_MINE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/delete_if_mine.lua")));

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-setnx-lua",
    chapter: "2.5",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_600,
    names: &[Name::RedisFor("lock:redis-setnx-lua", Unrenewed::Course)],
    title: Bilingual {
        zh: "用 Lua 脚本判断并删除，一步完成",
        en: "Check and delete as one script",
    },
    breaks: Bilingual {
        zh: "不可重入：自己等自己",
        en: "not re-entrant: an owner waits for itself",
    },
    source: include_str!("redis_setnx_lua.rs"),
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
