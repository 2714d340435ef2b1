//! §2.10.2 The fair lock: who asked first gets it first, across all instances.
//!
//! 1. Enter the shared queue of `fairLock`: here every request is a waiter of its own in Redis, not only its process.
//! 2. Wait until it is at the head and the lock is free; only the head is woken.
//! 3. Read, then write one less; release.
//!
//! What it survives: a waiter that dies (it falls out of the queue when its time is up), a holder that dies (the lease
//! ends). **What breaks it**: a holder that is paused beyond its lease and then writes. What it costs: every section has
//! a wake-up through Redis in it, where `redis-lock` hands the lock on inside the process.
//!
//! Next: `oversell_lock::redis::RedisFairLock`, the lock itself; then `redis_multi.rs`.

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
    slug: "redis-fair",
    chapter: "2.10.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 450,
    names: &[Name::Redis("fairLock")],
    title: Bilingual {
        zh: "公平锁：先来先得",
        en: "The fair lock: first come, first served",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过租约",
        en: "a holder that is paused beyond its lease",
    },
    source: include_str!("redis_fair.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx
        .redis
        .fair_lock(&job.redis_name("fairLock"))
        .lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
