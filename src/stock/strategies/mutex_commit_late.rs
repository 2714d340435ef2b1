#![doc = include_str!("mutex_commit_late.md")]

use super::mutex;
use crate::stock::*;
use oversell_lock::mysql::Conn;

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "[002]",
    rank: Rank::After("mutex"),
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql],
    pace: 2_300,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells in a transaction that outlives the mutex inside it.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let sold = deduct_in_transaction(ctx, &mut conn, job).await;
    mysql::end_transaction(conn, sold).await
}

/// Begins, reads and writes under the mutex, unlocks, stays for `hold_ms`, and commits only then.
async fn deduct_in_transaction(ctx: &Ctx, conn: &mut Conn, job: &Job) -> Result<Deduction, Error> {
    mysql::begin(conn, job).await?;
    let held = mutex::lock(ctx, job).await?;
    job.reach(Point::Locked).await;
    let count = mysql::read_on(conn, job, READ_STOCK).await?.count;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.reach_with(Point::Read, count).await;
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - 1)
        .bind(job.request.stock_id);
    mysql::execute_on(conn, job, update).await?;
    job.reach_with(Point::Written, count - 1).await;
    drop(held);
    job.reach(Point::Released).await;
    // The requested stay is here, so that this lesson breaks each time.
    job.enter_and_stay().await;
    mysql::commit(conn, job).await?;
    job.reach(Point::Committed).await;
    job.leave();
    Ok(Deduction::remaining(count - 1))
}
