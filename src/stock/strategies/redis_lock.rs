//! §2.10.1 The lock of Redisson: a lease that is renewed while the holder lives, and a wake-up when it is free.
//!
//! 1. Take the lock `lock`: one script checks and writes the owner, with a lease of 30 s.
//! 2. Read, then write one less; a task renews the lease every third.
//! 3. Release: one script checks the owner, deletes, and wakes who waits.
//!
//! What it survives: a holder that dies (the lease ends), a lost wake-up (a timed re-check), many waiters in one
//! process (they queue there, and Redis sees one). **What breaks it**: a holder that is paused beyond its lease and
//! then writes; a primary that fails before its replica has the key.
//!
//! Next: `oversell_lock::redis`, the lock itself; then `zk_lock.rs`.

use super::none;
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name},
    server::Server,
    stock::{Promise, Store, Strategy, under},
};
use oversell_lock::Lock;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-lock",
    chapter: "2.10.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 1_200,
    names: &[Name::Redis("lock")],
    title: Bilingual {
        zh: "Redisson 的锁：自动续期，释放时通知",
        en: "Redisson's lock: renewed, notified",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过租约",
        en: "a holder that is paused beyond its lease",
    },
    source: include_str!("redis_lock.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx
        .redis
        .lock(&job.redis_name("lock"))
        .lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
