#![doc = include_str!("zk_lock.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.4.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 460,
    names: &[Name::ZooKeeper("/distributed/zk-lock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let guard = ctx.zk.lock(&job.zk_path("/distributed/zk-lock")).acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
