#![doc = include_str!("redis_write.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.10.5",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 730,
    names: &[Name::Redis("rwLock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes the write half of the read-write lock, and sells under it.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.redis.rw_lock(&job.redis_name("rwLock")).write().lease(job.watchdog_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
