#![doc = include_str!("single_update_buckets.md")]

use crate::stock::*;
use oversell_lock::mysql::Conn;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.1",
    rank: Rank::Beyond("single-update-merged"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 3_900,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// A sixteenth of the buyers contend for each row.
const BUCKETS: u32 = 16;
/// How many pieces move at once: a bucket is refilled that much more seldom than it sells.
const LOT: i64 = 50;

const TAKE_ONE: &str =
    "UPDATE db_stock_bucket SET count = count - 1 WHERE stock_id = ? AND bucket = ? AND count > 0";
const TAKE_ANY: &str = "UPDATE db_stock_bucket SET count = count - 1 WHERE stock_id = ? AND count > 0 ORDER BY bucket LIMIT 1";
const FILL: &str = "INSERT INTO db_stock_bucket (stock_id, bucket, count) VALUES (?, ?, ?) \
                    ON DUPLICATE KEY UPDATE count = count + VALUES(count)";

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    take_from(ctx, job, fastrand::u32(..BUCKETS)).await
}

/// Takes a piece out of this bucket; if it is empty, refills it from the product's row; if that is empty too, takes one out of
/// any bucket.
pub(super) async fn take_from(ctx: &Ctx, job: &Job, bucket: u32) -> Result<Deduction, Error> {
    let since = job.enter_and_stay().await;
    job.record_attempt(since, take_or_refill(ctx, job, bucket).await)
}

/// Takes a piece of this bucket; if it is empty, refills it from the row, or takes a piece of any other bucket.
async fn take_or_refill(ctx: &Ctx, job: &Job, bucket: u32) -> Result<Deduction, Error> {
    let sold = Deduction::default();
    if mysql::execute(
        ctx,
        job,
        sqlx::query(TAKE_ONE)
            .bind(job.request.stock_id)
            .bind(bucket),
    )
    .await?
        == 1
    {
        return Ok(sold);
    }
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let moved = refill(&mut conn, job, bucket).await;
    match mysql::end_uncommitted(conn, moved).await {
        // The last pieces lie in other buckets.
        Err(Error::SoldOut)
            if mysql::execute(ctx, job, sqlx::query(TAKE_ANY).bind(job.request.stock_id))
                .await?
                == 1 =>
        {
            Ok(sold)
        }
        moved => moved.map(|()| sold),
    }
}

/// Moves pieces out of the row, and takes one of them.
async fn refill(conn: &mut Conn, job: &Job, bucket: u32) -> Result<(), Error> {
    mysql::begin(conn, job).await?;
    let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
    let count = mysql::read_locked(conn, job, select).await?;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    let lot = count.min(LOT);
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - lot)
        .bind(job.request.stock_id);
    mysql::execute_on(conn, job, update).await?;
    mysql::execute_on(
        conn,
        job,
        sqlx::query(FILL)
            .bind(job.request.stock_id)
            .bind(bucket)
            .bind(lot - 1),
    )
    .await?;
    mysql::commit(conn, job).await
}
