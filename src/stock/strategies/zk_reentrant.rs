#![doc = include_str!("zk_reentrant.md")]

use super::none;
use crate::stock::*;
use oversell_lock::zk::ZkLock;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.5",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 340,
    names: &[Name::ZooKeeper("/distributed/zk-reentrant")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes the lock, and inside takes it again and sells.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let outer = lock(ctx, job).acquire(job.wait_left()).await?;
    run_then_release(outer, |_| deduct_again(ctx, job)).await
}

/// Takes the lock a second time as the same owner, sells under it, and gives back this inner hold alone.
async fn deduct_again(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let inner = lock(ctx, job).acquire(job.wait_left()).await?;
    run_then_release(inner, |fence| none::read_then_write(ctx, job, fence)).await
}

/// The lock of this job's owner, who may take it again.
fn lock(ctx: &Ctx, job: &Job) -> ZkLock {
    ctx.zk.lock(&job.zk_path("/distributed/zk-reentrant")).owner(job.owner(ctx))
}
