#![doc = include_str!("version_cas.md")]

use crate::stock::*;

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 460,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Writes the count if the version is as it was read, else changes no row.
const TAKE_ONE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ?";

/// Reads the row, and writes one less if its version is the same; after a conflict it tries again at once, as long as the job
/// may wait.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut retries = 0;
    loop {
        let row = mysql::read(ctx, job, READ_STOCK).await?;
        if row.count <= 0 {
            return Err(Error::SoldOut);
        }
        let since = job.enter_and_stay().await;
        job.reach_with(Point::Read, row.count).await;
        let write = sqlx::query(TAKE_ONE).bind(row.count - 1).bind(job.request.stock_id).bind(row.version);
        if job.record_attempt(since, mysql::execute(ctx, job, write).await)? == 1 {
            job.reach_with(Point::Written, row.count - 1).await;
            return Ok(Deduction { retries, ..Deduction::remaining(row.count - 1) });
        }
        job.reach(Point::Conflict).await;
        if job.wait_left().is_zero() {
            return Err(job.timed_out("row in db_stock (version)"));
        }
        retries += 1;
    }
}
