#![doc = include_str!("zk_semaphore_mutex.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.7.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 270,
    names: &[Name::ZooKeeper("/curator/semaphore-mutex")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.zk.semaphore_mutex(&job.zk_path("/curator/semaphore-mutex"));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
