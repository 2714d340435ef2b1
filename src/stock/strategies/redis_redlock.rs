//! §2.9, 2.10.4 Redlock: the lock is had where most of five independent nodes say so.
//!
//! 1. Ask all nodes at once for `redLock`; three of five make a lock, for as long as its lease less what asking took.
//! 2. Read, then write one less; every third of the lease, renew it on most nodes.
//! 3. Release on every node, also on those that did not answer.
//!
//! What it survives: two of the five nodes dead. **What breaks it**: a holder that is paused beyond its lease; a node that
//! comes back without its data, and lets a second owner in; a node whose clock jumps. So it makes the lock available, not
//! safe: where it must be safe, let the row refuse an old token (`redis_fenced.rs`).
//!
//! Next: `oversell_lock::redis::Redlock`, the lock itself; then `redis_write.rs`.

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
use oversell_lock::{Lock, redis::Redlock};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-redlock",
    chapter: "2.9, 2.10.4",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 580,
    names: &[Name::RedisNodes("redLock")],
    title: Bilingual {
        zh: "红锁：五个节点里多数同意",
        en: "Redlock: most of five nodes agree",
    },
    breaks: Bilingual {
        zh: "停顿超过租约；节点丢了数据重启；时钟跳变",
        en: "a pause beyond the lease; a node that restarts without its data; a clock that jumps",
    },
    source: include_str!("redis_redlock.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = Redlock::new(&ctx.nodes, &job.redis_name("redLock")).lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
