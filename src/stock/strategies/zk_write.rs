#![doc = include_str!("zk_write.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.7.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 330,
    names: &[Name::ZooKeeper("/curator/rwlock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes the write half of the read-write lock, and sells under it.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let guard = ctx.zk.rw_lock(&job.zk_path("/curator/rwlock")).write().acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
