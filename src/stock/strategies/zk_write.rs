//! §3.7.3 The write half of Curator's `InterProcessReadWriteLock`: alone, while readers go together.
//!
//! 1. Create `/curator/rwlock/_c_<uuid>-__WRIT__NNNNNNNNNN` in one queue with the readers.
//! 2. Wait for the node before, whichever it is. (A reader waits for the first writer before it only.)
//! 3. Read, then write one less; delete the node.
//!
//! The stock's section writes, so it needs this half; `/test/zk/read` takes the other.
//!
//! What it survives: a holder that dies (its session ends, and its node with it); readers that never end, for who comes
//! after a waiting writer waits behind it. **What breaks it**: a holder that is paused beyond its session and then writes.
//!
//! Next: `oversell_lock::zk::ZkRwLock`, the lock itself; then `zk_multi.rs`.

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
    slug: "zk-write",
    chapter: "3.7.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 330,
    names: &[Name::ZooKeeper("/curator/rwlock")],
    title: Bilingual {
        zh: "Curator 读写锁的写锁",
        en: "The write half of Curator's read-write lock",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_write.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let guard = ctx
        .zk
        .rw_lock(&job.zk_path("/curator/rwlock"))
        .write()
        .acquire(job.wait_left())
        .await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
