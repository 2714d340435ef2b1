#![doc = include_str!("redis_setnx_owner.md")]

use crate::section::{
    Points, RedisTap, Unrenewed,
    redis_polling::{self as stage, Lock, Stage},
};
use crate::stock::prelude::*;
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
    let lock = Lock::new(ctx, job, "lock:redis-setnx-owner", stage::LEASE, Owned);
    let held = stage::lock(ctx, job, lock).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

struct Owned;

impl Stage for Owned {
    const OWNED: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut RedisTap) -> RedisResult<bool> {
        redis::cmd("SET")
            .arg((&lock.key, &lock.owner, "NX", "PX", lock.lease))
            .query_async(redis)
            .await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut RedisTap, points: &Points) -> RedisResult<bool> {
        let holder: Option<String> = redis::cmd("GET").arg(&lock.key).query_async(redis).await?;
        if holder.as_deref() != Some(lock.owner.as_str()) {
            return Ok(false);
        }
        points.tell(Point::Checked, &lock.owner).await;
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}
