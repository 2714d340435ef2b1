#![doc = include_str!("mutex.md")]

use crate::stock::*;
use oversell_lock::local::{MutexGuard, Mutexes};

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.5",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::OneProcess,
    needs: &[Server::MySql],
    pace: 3_200,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Reads the row, stays, and writes one less, under this process's mutex of the product.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let _held = lock(ctx, job).await?;
    job.reach(Point::Locked).await;
    let select = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";
    let count = mysql::read(ctx, job, select).await?.count;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.enter_and_stay().await;
    job.reach_with(Point::Read, count).await;
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - 1)
        .bind(job.request.stock_id);
    mysql::execute(ctx, job, update).await?;
    job.reach_with(Point::Written, count - 1).await;
    job.leave();
    Ok(Deduction::remaining(count - 1))
}

/// Locks this process's mutex of the job's product, waiting for it as long as the job may.
pub(super) async fn lock(ctx: &Ctx, job: &Job) -> Result<MutexGuard, Error> {
    job.reach(Point::Waits).await;
    let held = ctx.local.of::<Mutexes<i64>>().lock(&job.request.stock_id, job.wait_left()).await;
    held.ok_or_else(|| job.timed_out("in-process mutex"))
}
