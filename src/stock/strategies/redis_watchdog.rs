//! §2.7 The lock of §2.6 with a watchdog: a timer that begins the lease anew every third of it.
//!
//! 1. `lua/enter.lua` on the hash `lock:redis-watchdog`, with a lease of 30 s; a timer starts.
//! 2. Every third of the lease (10 s), `lua/renew.lua`: if the lock is still ours, its lease begins anew.
//! 3. Read the key `stock`, then write one less.
//! 4. The timer stops; `lua/leave.lua`.
//!
//! What it survives: a job of any length, and a holder that dies: its timer dies with it, and the lease ends. A timer
//! that renewed without looking at the owner would renew another's lock ([001] 2.2.1.3). **What breaks it**: a process
//! that is stopped beyond its lease, timer and all, and then writes; who waits still polls.
//!
//! Next: `redis_lock.rs`, where who waits is told.

use super::redis_reentrant::Reentrant;
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name, Point, Points, redis_polling as stage},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use redis::{RedisResult, Script};
use std::{sync::LazyLock, time::Duration};
use tokio_util::task::AbortOnDropHandle;

static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/renew.lua")));

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-watchdog",
    chapter: "2.7",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 590,
    names: &[Name::Redis("lock:redis-watchdog")],
    title: Bilingual {
        zh: "看门狗：定时给锁续期",
        en: "A watchdog renews the lease by a timer",
    },
    breaks: Bilingual {
        zh: "进程停顿超过租约",
        en: "a process that is stopped beyond its lease",
    },
    source: include_str!("redis_watchdog.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = || Reentrant::new(ctx, job, "lock:redis-watchdog");
    let held = stage::lock(ctx, job, lock()).await?;
    let watchdog = AbortOnDropHandle::new(tokio::spawn(renew(
        ctx.clone(),
        lock(),
        job.seen.points().clone(),
    )));
    let section = async {
        let outcome = stage::read_then_write(ctx, job).await;
        // Before the unlock, so that no renewal outlives the lock.
        drop(watchdog);
        outcome
    };
    stage::under(held, section).await
}

async fn renew(ctx: Ctx, lock: Reentrant, points: Points) {
    let mut redis = ctx.redis.connection();
    loop {
        tokio::time::sleep(Duration::from_millis(lock.lease / 3)).await;
        points.at(Point::Renew).await;
        let renewed: RedisResult<bool> = RENEW
            .key(&lock.key)
            .arg(&lock.owner)
            .arg(lock.lease)
            .invoke_async(&mut redis)
            .await;
        points.at(Point::Renewed).await;
        match renewed {
            Ok(true) => {}
            Ok(false) => return,
            // The next one may be answered, as long as the lease lasts.
            Err(error) => tracing::warn!(%error, lock = lock.key, "not renewed"),
        }
    }
}
