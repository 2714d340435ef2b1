#![doc = include_str!("redis_fair.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.10.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 450,
    names: &[Name::Redis("fairLock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Queues for the fair lock, and sells under it.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.redis.fair_lock(&job.redis_name("fairLock")).lease(job.watchdog_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
