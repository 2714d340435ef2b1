#![doc = include_str!("none.md")]

use crate::stock::*;
use oversell_lock::Fence;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql],
    pace: 4_700,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Reads the row, stays, and writes one less, under no lock.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    read_then_write(ctx, job, None).await
}

/// Reads the row, stays for `hold_ms`, and writes one less: the section of this strategy, and of those that do it under a
/// lock. `fence` is reported only, the row does not check it.
pub(super) async fn read_then_write(ctx: &Ctx, job: &Job, fence: Option<Fence>) -> Result<Deduction, Error> {
    mysql::report_locked(job, fence).await;
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
    Ok(Deduction { fence, ..Deduction::remaining(count - 1) })
}
