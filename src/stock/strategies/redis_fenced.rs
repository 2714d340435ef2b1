//! [003] The fenced lock: the row itself refuses a holder that has lost its lock.
//!
//! 1. Take the lock `fencedLock`; the same script draws a token, higher than all before it.
//! 2. Show the token to the row, which from now on refuses every lower one; read, then write one less (`fenced.rs`).
//! 3. Release.
//!
//! What it survives: a holder that is paused beyond its lease, a primary that fails, a clock that jumps: two may believe
//! that they hold the lock, and only the younger one sells. A counter that Redis has lost costs one request: it is
//! refused, and lifts the counter to what the row has seen. **What breaks it**: a writer that does not show its token.
//!
//! Next: `oversell_lock::redis::RedisFencedLock`, the lock itself; then `zk_fenced.rs`.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name},
    server::Server,
    stock::{Promise, Store, Strategy, fenced, under},
};
use oversell_lock::Lock;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-fenced",
    chapter: "[003]",
    rank: Rank::After("redis-write"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::Redis],
    pace: 670,
    names: &[Name::Redis("fencedLock"), Name::Fence],
    title: Bilingual {
        zh: "带栅栏令牌的锁：旧令牌的写入被行拒绝",
        en: "The fenced lock: the row refuses an old token",
    },
    breaks: Bilingual {
        zh: "没有；只要每个写入者都出示令牌",
        en: "nothing, as long as every writer shows its token",
    },
    source: include_str!("redis_fenced.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx
        .redis
        .fenced_lock(&job.redis_name("fencedLock"))
        .lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    let lift = async |seen| lock.lift(seen).await;
    under(guard, |fence| {
        fenced::read_then_write(ctx, job, lock.name(), fence, lift)
    })
    .await
}
