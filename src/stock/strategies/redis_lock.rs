#![doc = include_str!("redis_lock.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.10.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 1_200,
    names: &[Name::Redis("lock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// The key is `lock:7` for product 7, after the prefix of the settings. The lease is the request's or the settings', and renewed.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.redis.lock(&job.redis_name("lock")).lease(job.watchdog_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
