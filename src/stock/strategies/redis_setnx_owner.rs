#![doc = include_str!("redis_setnx_owner.md")]

use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{
        Deducted, Job, Name, Point, Points, Unrenewed,
        redis_polling::{self as stage, Stage},
    },
    server::Server,
    stock::{Facts, Promise, Store},
};
use oversell_lock::redis::Connection;
use redis::RedisResult;

pub(super) const STRATEGY: Facts = Facts {
    chapter: "2.3",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_200,
    names: &[Name::RedisFor("lock:redis-setnx-owner", Unrenewed::Course)],
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
