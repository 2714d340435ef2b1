#![doc = include_str!("mysql_named_lock.md")]

use crate::section::LockState;
use crate::stock::*;
use oversell_lock::mysql::Conn;

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "4",
    rank: Rank::Beyond("table-lock-lease"),
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql],
    pace: 1_100,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// The name of the lock, for this database and product. MySQL takes 64 characters, of which a product has at most 25; a longer
/// name of a database is replaced by its hash.
macro_rules! name {
    () => {
        "CONCAT(IF(CHAR_LENGTH(DATABASE()) > 38, LEFT(SHA2(DATABASE(), 256), 38), DATABASE()), '.', ?)"
    };
}
/// Takes the lock: 1 if it was acquired, 0 after this many seconds without it.
const LOCK: &str = concat!("SELECT GET_LOCK(", name!(), ", ?)");
/// Releases the lock: 1 if it was ours, 0 if it is another connection's, NULL if it was free.
const UNLOCK: &str = concat!("SELECT RELEASE_LOCK(", name!(), ")");

/// Takes the lock, sells, and releases it, on one connection.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let name = job.redis_name("stock");
    let mut sold = deduct_under_lock(&mut conn, job, &name).await;
    // A connection that is not returned to the pool is closed, which releases its lock. Without a lock there is nothing to
    // release.
    let unlock = sqlx::query_scalar::<_, Option<i64>>(UNLOCK).bind(&name);
    if mysql::is_answered(&sold)
        && let Ok(released) = mysql::within_limit(job, unlock.fetch_one(&mut *conn)).await
    {
        conn.done();
        let lock = if released == Some(1) { LockState::Kept } else { LockState::Lost };
        sold = sold.map(|sold| sold.with_lock_state(Some(lock)));
    }
    sold
}

/// Waits for the lock, at most as long as the job may, then reads and writes the row. Does not release it.
async fn deduct_under_lock(conn: &mut Conn, job: &Job, name: &str) -> Result<Deduction, Error> {
    let seconds = if job.wait_left().is_zero() { 0 } else { job.wait_left().as_secs() + 1 };
    let had: Option<Option<i64>> = mysql::scalar(conn, job, sqlx::query_scalar(LOCK).bind(name).bind(seconds)).await?;
    if had != Some(Some(1)) {
        return Err(job.timed_out(&format!("named lock {name}")));
    }
    let count = mysql::read_on(conn, job, READ_STOCK).await?.count;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.enter_and_stay().await;
    job.reach_with(Point::Read, count).await;
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - 1)
        .bind(job.request.stock_id);
    mysql::execute_on(conn, job, update).await?;
    job.leave();
    Ok(Deduction::remaining(count - 1))
}
