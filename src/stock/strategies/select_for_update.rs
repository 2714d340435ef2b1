#![doc = include_str!("select_for_update.md")]

use crate::stock::*;
use oversell_lock::mysql::Conn;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 2_200,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells in one transaction under the row's lock.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let sold = deduct_in_transaction(&mut conn, job).await;
    mysql::end_transaction(conn, sold).await
}

/// Begins, reads the row `FOR UPDATE`, stays, writes one less, and commits.
async fn deduct_in_transaction(conn: &mut Conn, job: &Job) -> Result<Deduction, Error> {
    mysql::begin(conn, job).await?;
    job.reach(Point::Waits).await;
    let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
    let count = mysql::read_locked(conn, job, select).await?;
    job.reach(Point::Locked).await;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.enter_and_stay().await;
    job.reach_with(Point::Read, count).await;
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - 1)
        .bind(job.request.stock_id);
    mysql::execute_on(conn, job, update).await?;
    job.reach_with(Point::Written, count - 1).await;
    job.leave();
    mysql::commit(conn, job).await?;
    job.reach(Point::Committed).await;
    Ok(Deduction::remaining(count - 1))
}
