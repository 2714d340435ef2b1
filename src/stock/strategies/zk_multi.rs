//! §3.7.4 Curator's `InterProcessMultiLock`: several locks as one, all or none.
//!
//! 1. Take `/curator/multi/1`, `/2`, `/3` in this order; where one is not had in time, give back those that were.
//! 2. Read, then write one less.
//! 3. Release them in the reverse order; one that fails does not keep the others.
//!
//! What it survives: what each of its parts survives, and others who take the same locks in another order. **What breaks
//! it**: a holder that is paused beyond its session and then writes. What it costs: three nodes for each section.
//!
//! Next: `oversell_lock::MultiLock`, the lock itself; then `zk_fenced.rs`.

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
pub(crate) const PARTS: [&str; 3] = ["/curator/multi/1", "/curator/multi/2", "/curator/multi/3"];

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "zk-multi",
    chapter: "3.7.4",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 170,
    names: &[
        Name::ZooKeeper(PARTS[0]),
        Name::ZooKeeper(PARTS[1]),
        Name::ZooKeeper(PARTS[2]),
    ],
    title: Bilingual {
        zh: "联锁：三把锁要么都拿到，要么都不拿",
        en: "The multi lock: all of three, or none",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_multi.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let parts = PARTS.map(|path| ctx.zk.lock(&job.zk_path(path)));
    let guard = MultiLock::new(parts.into())
        .acquire(job.wait_left())
        .await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
