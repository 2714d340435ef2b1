#![doc = include_str!("zk_mutex.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.7.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 420,
    names: &[Name::ZooKeeper("/curator/lock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let guard = ctx.zk.lock(&job.zk_path("/curator/lock")).acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
