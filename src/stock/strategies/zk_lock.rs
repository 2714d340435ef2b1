//! §3.4.2 The lock of ZooKeeper: a queue of ephemeral nodes, each of which watches the one before it.
//!
//! 1. Create an ephemeral, sequential node under `/distributed/zk-lock`.
//! 2. The lowest number has the lock; every other watches its predecessor only, and looks again when that one goes.
//! 3. Read, then write one less; delete the node.
//!
//! What it survives: a holder that dies (its session ends, its node goes), a herd (one release wakes one waiter).
//! **What breaks it**: a holder that is paused beyond its session and then writes.
//!
//! Next: `oversell_lock::zk`, the lock itself; then `zk_reentrant.rs`.

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
    slug: "zk-lock",
    chapter: "3.4.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 460,
    names: &[Name::ZooKeeper("/distributed/zk-lock")],
    title: Bilingual {
        zh: "ZooKeeper 锁：排队，只盯前一个",
        en: "ZooKeeper's lock: a queue, each watches the one before",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_lock.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let guard = ctx
        .zk
        .lock(&job.zk_path("/distributed/zk-lock"))
        .acquire(job.wait_left())
        .await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
