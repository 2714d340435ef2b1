//! §3.7.2 Curator's `InterProcessSemaphoreMutex`: a semaphore with one lease.
//!
//! 1. Take the mutex `/curator/semaphore-mutex/locks`, so that one at a time looks for a lease.
//! 2. Create a node in `/curator/semaphore-mutex/leases`; once it is the only one, the lease is had. Give the mutex back.
//! 3. Read, then write one less; delete the lease.
//!
//! It is not re-entrant: an owner that takes it again waits for itself. It does not exclude who uses a mutex of the same
//! name: its nodes are others.
//!
//! What it survives: a holder that dies (its session ends, and its lease with it). **What breaks it**: a holder that is
//! paused beyond its session and then writes. What it costs: two nodes for each section, where the mutex has one.
//!
//! Next: `oversell_lock::zk::ZkSemaphoreMutex`, the lock itself; then `zk_write.rs`.

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
    slug: "zk-semaphore-mutex",
    chapter: "3.7.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 270,
    names: &[Name::ZooKeeper("/curator/semaphore-mutex")],
    title: Bilingual {
        zh: "Curator 的不可重入锁：只有一个租约的信号量",
        en: "Curator's lock that is not re-entrant: a semaphore of one",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_semaphore_mutex.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx
        .zk
        .semaphore_mutex(&job.zk_path("/curator/semaphore-mutex"));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
