//! §2.10.3 The multi lock: several locks as one, all or none.
//!
//! 1. Take `lock1`, `lock2`, `lock3` in this order; where one is not had in time, give back those that were.
//! 2. Read, then write one less.
//! 3. Release them in the reverse order.
//!
//! What it survives: what each of its parts survives, and others who take the same locks in another order. **What breaks
//! it**: a holder that is paused beyond its lease and then writes: it is as weak as its weakest part, and three times as
//! dear. It is meant for what spans three things, not to make one lock stronger.
//!
//! Next: `oversell_lock::MultiLock`, the lock itself; then `redis_redlock.rs`.

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
use oversell_lock::{Lock, MultiLock};

/// Its parts, in the order in which they are taken.
pub(crate) const PARTS: [&str; 3] = ["lock1", "lock2", "lock3"];

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-multi",
    chapter: "2.10.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 500,
    names: &[
        Name::Redis(PARTS[0]),
        Name::Redis(PARTS[1]),
        Name::Redis(PARTS[2]),
    ],
    title: Bilingual {
        zh: "联锁：几把锁要么都拿到，要么都不拿",
        en: "The multi lock: all of several, or none",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过租约",
        en: "a holder that is paused beyond its lease",
    },
    source: include_str!("redis_multi.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let parts = PARTS.map(|name| {
        ctx.redis
            .lock(&job.redis_name(name))
            .lease(job.watchdog(ctx))
    });
    let guard = MultiLock::new(parts.into())
        .acquire(job.wait_left())
        .await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
