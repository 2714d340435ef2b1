//! §3.5 Who has the lock may take it again: a count in the process, and one node on the server.
//!
//! 1. Take the lock `/distributed/zk-reentrant` as this request's owner: a node in the queue, as in `zk_lock.rs`.
//! 2. The section calls a method that takes the same lock again: it is counted, and gets in.
//! 3. Read, then write one less. Give it back twice; the node goes with the last.
//!
//! The course counts for a thread; the owner here is the request, for async code changes threads at every `await`.
//!
//! What it survives: what `zk_lock.rs` does, and re-entry. **What breaks it**: a holder that is paused beyond its session
//! and then writes; an owner that two tasks share, for both are let in.
//!
//! Next: `zk_mutex.rs`, the same from Curator's shelf.

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
use oversell_lock::{Lock, zk::ZkLock};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "zk-reentrant",
    chapter: "3.5",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 340,
    names: &[Name::ZooKeeper("/distributed/zk-reentrant")],
    title: Bilingual {
        zh: "可重入：同一个持有者再次进入，节点只有一个",
        en: "Re-entrant: its owner comes in again, with the same node",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_reentrant.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let outer = lock(ctx, job).acquire(job.wait_left()).await?;
    under(outer, |_| again(ctx, job)).await
}

async fn again(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let inner = lock(ctx, job).acquire(job.wait_left()).await?;
    under(inner, |fence| none::read_then_write(ctx, job, fence)).await
}

fn lock(ctx: &Ctx, job: &Job) -> ZkLock {
    ctx.zk
        .lock(&job.zk_path("/distributed/zk-reentrant"))
        .owner(job.owner(ctx))
}
