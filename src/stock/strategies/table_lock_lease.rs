#![doc = include_str!("table_lock_lease.md")]

use super::{none, table_lock};
use crate::stock::*;
use oversell_lock::{Lease, mysql::TableLeaseLock};

/// The name of the lock's row in `tb_lock`, for product 1.
const NAME: &str = "lock:table-lock-lease";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "4.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql],
    pace: 110,
    names: &[Name::TableLock(NAME)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes the row with its renewed lease, and inside takes it again and sells.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lease = job.lease(ctx);
    let lock = ctx
        .db
        .table_lease_lock(&job.redis_name(NAME))
        .description(table_lock::row_description(ctx, job, module_path!()))
        .lease(Lease::Watchdog(lease))
        .owner(job.owner(ctx));
    job.reach(Point::Waits).await;
    let outer = lock.acquire(job.wait_left()).await?;
    run_then_release(outer, |_| deduct_again(ctx, job, &lock)).await
}

/// Takes the lock a second time as the same owner, sells under it, and gives back this inner hold alone.
async fn deduct_again(ctx: &Ctx, job: &Job, lock: &TableLeaseLock) -> Result<Deduction, Error> {
    let inner = lock.acquire(job.wait_left()).await?;
    run_then_release(inner, |fence| none::read_then_write(ctx, job, fence)).await
}
