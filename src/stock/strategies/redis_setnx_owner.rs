//! §2.3 The key says whose it is: look before deleting.
//!
//! 1. `SET lock:redis-setnx-owner <owner> NX PX 3000`; where it is there already, try again in about 50 ms.
//! 2. Read the key `stock`, then write one less.
//! 3. `GET` the lock; `DEL` it if it is still ours, else say `lock: lost`.
//!
//! What it survives: a job longer than the lease no longer deletes another's lock, nearly always. **What breaks it**:
//! GET and DEL are two commands. A lease that ends between them lets another in, whose lock is deleted.
//!
//! Next: `redis_script.rs`, what a script is; then `redis_setnx_lua.rs`, which makes one of the two.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{
        Deducted, Job, Name, Point, Points, Unrenewed,
        redis_polling::{self as stage, Stage},
    },
    server::Server,
    stock::{Promise, Store, Strategy},
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-setnx-owner",
    chapter: "2.3",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_200,
    names: &[Name::RedisFor("lock:redis-setnx-owner", Unrenewed::Course)],
    title: Bilingual {
        zh: "锁里写上是谁的，删之前先看",
        en: "The key names its owner, who looks before deleting",
    },
    breaks: Bilingual {
        zh: "看和删之间，锁可能已换人",
        en: "the lease that ends between GET and DEL",
    },
    source: include_str!("redis_setnx_owner.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let (key, owner) = (
        stage::key(ctx, job, "lock:redis-setnx-owner"),
        job.owner(ctx).to_string(),
    );
    let held = stage::lock(
        ctx,
        job,
        Owned {
            key,
            owner,
            lease: stage::lease(job),
        },
    )
    .await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

struct Owned {
    key: String,
    owner: String,
    lease: u64,
}

impl Stage for Owned {
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

    async fn unlock(&self, redis: &mut Connection, points: &Points) -> RedisResult<bool> {
        let holder: Option<String> = redis::cmd("GET").arg(&self.key).query_async(redis).await?;
        if holder.as_deref() != Some(self.owner.as_str()) {
            return Ok(false);
        }
        points.tell(Point::Checked, &self.owner).await;
        redis::cmd("DEL").arg(&self.key).query_async(redis).await
    }
}
