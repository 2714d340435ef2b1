//! §3.7.1 Curator's `InterProcessMutex`: a Java process on this path and this one exclude each other.
//!
//! 1. Create `/curator/lock/_c_<uuid>-lock-NNNNNNNNNN`, ephemeral and sequential; the uuid finds it again where the
//!    answer to its creation is lost.
//! 2. The lowest number has the lock; every other watches its predecessor.
//! 3. Read, then write one less; delete the node.
//!
//! What it survives: a holder that dies (its session ends, and its node with it), a connection that is cut at any point.
//! **What breaks it**: a holder that is paused beyond its session and then writes.
//!
//! Next: `oversell_lock::zk::ZkLock`, the lock itself; then `zk_semaphore_mutex.rs`.

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
    slug: "zk-mutex",
    chapter: "3.7.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 420,
    names: &[Name::ZooKeeper("/curator/lock")],
    title: Bilingual {
        zh: "Curator 的可重入互斥锁",
        en: "Curator's mutex, re-entrant",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_mutex.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let guard = ctx
        .zk
        .lock(&job.zk_path("/curator/lock"))
        .acquire(job.wait_left())
        .await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
