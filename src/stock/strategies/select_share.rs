#![doc = include_str!("select_share.md")]

use crate::stock::*;
use oversell_lock::mysql::Conn;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.2",
    rank: Rank::After("select-for-update"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 270,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes a piece in a transaction, again after each rollback as long as the job may wait.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut retries = 0;
    loop {
        let mut conn = ctx.mysql(job.wait_left()).await?;
        let tried = try_in_transaction(&mut conn, job).await;
        if let Some(count) = mysql::end_transaction(conn, tried).await? {
            return Ok(Deduction { retries, ..Deduction::remaining(count) });
        }
        if job.wait_left().is_zero() {
            return Err(job.timed_out("row in db_stock (deadlocks)"));
        }
        retries += 1;
    }
}

/// One attempt: returns what is left, or `None` if the server has rolled it back to end a deadlock.
async fn try_in_transaction(conn: &mut Conn, job: &Job) -> Result<Option<i64>, Error> {
    mysql::begin(conn, job).await?;
    job.reach(Point::Waits).await;
    let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? LOCK IN SHARE MODE";
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
    if !mysql::execute_or_deadlock(conn, job, update).await? {
        job.reach(Point::Conflict).await;
        return Ok(None);
    }
    job.reach_with(Point::Written, count - 1).await;
    job.leave();
    mysql::commit(conn, job).await?;
    job.reach(Point::Committed).await;
    Ok(Some(count - 1))
}
