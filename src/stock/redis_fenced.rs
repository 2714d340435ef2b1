//! [003] The fenced lock: the row itself refuses a holder that has lost its lock.
//!
//! 1. Take the lock `fencedLock`; the same script draws a token, higher than all before it.
//! 2. Show the token to the row: from now on it refuses every lower one.
//! 3. Read, then write one less, which the row takes only from this token. Release.
//!
//! Step 2 is what a token that is only checked at the write leaves open: an old holder could still write between the
//! new one's read and its write. It costs a second commit.
//!
//! What it survives: a holder that is paused beyond its lease, a primary that fails, a clock that jumps: two may believe
//! that they hold the lock, and only the younger one sells. A counter that Redis has lost costs one request: it is
//! refused, and lifts the counter to what the row has seen. **What breaks it**: a writer that does not show its token.
//!
//! Next: `oversell_lock::redis::RedisFencedLock`, the lock itself; then `zk_lock.rs`.

use super::{Deducted, Job, Pace, Promise, Server, Store, Strategy, Title, row, under};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::Lock;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-fenced",
    chapter: "[003]",
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::Redis],
    pace: Pace::Course,
    title: Title {
        zh: "带栅栏令牌的锁：旧令牌的写入被行拒绝", en: "the fenced lock: the row refuses an old token"
    },
    breaks: Title {
        zh: "没有；只要每个写入者都出示令牌", en: "nothing, as long as every writer shows its token"
    },
    source: include_str!("redis_fenced.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx.redis.fenced_lock(&job.redis_name("fencedLock"));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, async |fence| {
        let fence = fence.ok_or_else(|| Error::Internal("a fenced lock without a token".into()))?;
        let mut conn = ctx.mysql(job).await?;
        if !row::show(&mut conn, job.stock_id, fence).await? {
            let seen = row::fence(&mut conn, job.stock_id).await?;
            conn.done();
            lock.lift(seen).await?;
            return Err(Error::Fenced(lock.name().to_owned()));
        }
        let count = row::read(&mut conn, job.stock_id).await?.count;
        if count <= 0 {
            conn.done();
            return Err(Error::SoldOut);
        }
        job.inside().await;
        let written = row::write_fenced(&mut conn, job.stock_id, count - 1, fence).await?;
        conn.done();
        if !written {
            return Err(Error::Fenced(lock.name().to_owned()));
        }
        Ok(Deducted { remaining: Some(count - 1), fence: Some(fence), retries: 0 })
    })
    .await
}
