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

/// The rows among which a product's pieces are spread: a sixteenth of the buyers contend for each.
const BUCKETS: u32 = 16;
/// The most pieces that a refill moves into a bucket: it is refilled that much more seldom than it sells.
const MAX_REFILL: i64 = 50;

/// Takes a piece of this bucket if one is left, else changes no row.
const TAKE_ONE: &str = "UPDATE db_stock_bucket SET count = count - 1 WHERE stock_id = ? AND bucket = ? AND count > 0";
/// Takes a piece from the first bucket that has one.
const TAKE_ANY: &str = "UPDATE db_stock_bucket SET count = count - 1 WHERE stock_id = ? AND count > 0 ORDER BY bucket LIMIT 1";
/// Adds pieces to a bucket, which is made if it is missing.
const FILL: &str = "INSERT INTO db_stock_bucket (stock_id, bucket, count) VALUES (?, ?, ?) \
                    ON DUPLICATE KEY UPDATE count = count + VALUES(count)";

/// Takes a piece out of a bucket chosen at random.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    take_from(ctx, job, fastrand::u32(..BUCKETS)).await
}

/// Takes a piece out of this bucket; if it is empty, refills it from the product's row; if that is empty too, takes one out of
/// any bucket.
pub(super) async fn take_from(ctx: &Ctx, job: &Job, bucket: u32) -> Result<Deduction, Error> {
    let since = job.enter_and_stay().await;
    job.record_attempt(since, take_or_refill(ctx, job, bucket).await)
}

/// As [`take_from`], without the stay.
async fn take_or_refill(ctx: &Ctx, job: &Job, bucket: u32) -> Result<Deduction, Error> {
    let sold = Deduction::default();
    if mysql::execute(ctx, job, sqlx::query(TAKE_ONE).bind(job.request.stock_id).bind(bucket)).await? == 1 {
        return Ok(sold);
    }
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let moved = refill(&mut conn, job, bucket).await;
    match mysql::end_transaction(conn, moved).await {
        // The last pieces lie in other buckets.
        Err(Error::SoldOut) if mysql::execute(ctx, job, sqlx::query(TAKE_ANY).bind(job.request.stock_id)).await? == 1 => Ok(sold),
        moved => moved.map(|()| sold),
    }
}

/// Moves up to [`MAX_REFILL`] pieces from the product's row to the bucket, and takes one of them. [`Error::SoldOut`] if
/// the row is empty.
async fn refill(conn: &mut Conn, job: &Job, bucket: u32) -> Result<(), Error> {
    mysql::begin(conn, job).await?;
    let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
    let count = mysql::read_locked(conn, job, select).await?;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    let moved_pieces = count.min(MAX_REFILL);
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - moved_pieces)
        .bind(job.request.stock_id);
    mysql::execute_on(conn, job, update).await?;
    mysql::execute_on(conn, job, sqlx::query(FILL).bind(job.request.stock_id).bind(bucket).bind(moved_pieces - 1)).await?;
    mysql::commit(conn, job).await
}
