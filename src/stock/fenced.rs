//! [003] The section of the fenced strategies: the row itself refuses a holder that has lost its lock.
//!
//! 1. Show the token to the row: from now on it refuses every lower one.
//! 2. Read, then write one less, which the row takes only from this token.
//!
//! Step 1 is what a token that is only checked at the write leaves open: an old holder could still write between the
//! new one's read and its write. It costs a second commit.
//!
//! What it survives: two holders that both believe they have the lock: only the younger one sells. **What breaks it**: a
//! writer that does not show its token, and tokens of two sources on one row: they do not compare.
//!
//! Points for a replay: `locked` (with the token), `read`, `written`.
//!
//! Next: `redis_fenced.rs` and `zk_fenced.rs`, which draw the token.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job, Point, mysql},
};
use oversell_lock::{Fence, LockError};

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";
/// Raises the row's token to ours; changes nothing if the row has ours already or a newer one.
const RAISE_FENCE: &str = "UPDATE db_stock SET fence = ? WHERE id = ? AND fence < ?";
/// Writes the count if the row's token is ours, else changes no row.
const WRITE_STOCK: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND fence = ?";

/// Takes a piece if the row accepts the token `fence` of the lock `name`, else fails with [`Error::Fenced`].
/// `on_newer_fence` gets the row's newer token if the row has one before the read.
pub(super) async fn fenced_read_then_write(
    ctx: &Ctx,
    job: &Job,
    name: &str,
    fence: Option<Fence>,
    on_newer_fence: impl AsyncFnOnce(Fence) -> Result<(), LockError>,
) -> Result<Deduction, Error> {
    let fence = fence.ok_or_else(|| Error::Internal("a fenced lock without a token".into()))?;
    mysql::report_locked(job, Some(fence)).await;
    let fenced = |seen: Fence| Error::Fenced { name: name.to_owned(), fence: fence.0, seen: seen.0 };
    let show = sqlx::query(RAISE_FENCE).bind(fence.0).bind(job.request.stock_id).bind(fence.0);
    if mysql::execute(ctx, job, show).await? == 0 {
        let seen = mysql::read(ctx, job, READ_STOCK).await?.fence();
        on_newer_fence(seen).await?;
        return Err(fenced(seen));
    }
    let count = mysql::read(ctx, job, READ_STOCK).await?.count;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.enter_and_stay().await;
    job.reach_with(Point::Read, count).await;
    let write = sqlx::query(WRITE_STOCK).bind(count - 1).bind(job.request.stock_id).bind(fence.0);
    if mysql::execute(ctx, job, write).await? == 0 {
        return Err(fenced(mysql::read(ctx, job, READ_STOCK).await?.fence()));
    }
    job.reach_with(Point::Written, count - 1).await;
    job.leave();
    Ok(Deduction { fence: Some(fence), ..Deduction::remaining(count - 1) })
}
