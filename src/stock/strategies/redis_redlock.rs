#![doc = include_str!("redis_redlock.md")]

use super::none;
use crate::stock::*;
use oversell_lock::redis::RedlockClient;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.9, 2.10.4",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 580,
    names: &[Name::RedisNodes("redLock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes the lock on a majority of the nodes, and sells under it.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = RedlockClient::new(&ctx.nodes)?.lock(&job.redis_name("redLock"));
    let lock = lock.lease(job.watchdog_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
