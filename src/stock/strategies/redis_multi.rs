#![doc = include_str!("redis_multi.md")]

use super::none;
use crate::stock::*;
use oversell_lock::MultiLock;

/// Its parts, in the order in which they are taken.
pub(crate) const PARTS: [&str; 3] = ["lock1", "lock2", "lock3"];

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.10.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Redis],
    pace: 500,
    names: &[Name::Redis(PARTS[0]), Name::Redis(PARTS[1]), Name::Redis(PARTS[2])],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes all three locks, and sells under them.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let parts = PARTS.map(|name| ctx.redis.lock(&job.redis_name(name)).lease(job.watchdog_lease(ctx)));
    let guard = MultiLock::new(parts.into()).acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
