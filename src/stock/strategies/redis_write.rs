//! §2.10.5 The write half of a read-write lock: alone, as any lock.
//!
//! 1. Take the write lock of `rwLock`: nobody reads or writes meanwhile.
//! 2. Read, then write one less; release.
//!
//! What it survives: a holder that dies (the lease ends), a lost wake-up (a timed re-check). **What breaks it**: a holder
//! that is paused beyond its lease and then writes. Where all only write, as here, it gains nothing over `redis-lock`;
//! `/test/read` and `/test/write` show what it is for.
//!
//! Next: `oversell_lock::redis::RedisRwLock`, the lock itself; then `redis_fenced.rs`.

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
    slug: "redis-write",
    chapter: "2.10.5",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 730,
    names: &[Name::Redis("rwLock")],
    title: Bilingual {
        zh: "读写锁的写锁",
        en: "The write half of a read-write lock",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过租约",
        en: "a holder that is paused beyond its lease",
    },
    source: include_str!("redis_write.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx
        .redis
        .rw_lock(&job.redis_name("rwLock"))
        .write()
        .lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
