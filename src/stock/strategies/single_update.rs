#![doc = include_str!("single_update.md")]

use crate::stock::*;

/// Takes a piece if one is left, else changes no row.
const TAKE_ONE: &str = "UPDATE db_stock SET count = count - 1, version = version + 1 WHERE id = ? AND count > 0";

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 5_500,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes a piece by one UPDATE; if that changes no row, a read tells sold out from no such product.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let since = job.enter_and_stay().await;
    let update = sqlx::query(TAKE_ONE).bind(job.request.stock_id);
    if job.record_attempt(since, mysql::execute(ctx, job, update).await)? == 0 {
        mysql::read(ctx, job, READ_STOCK).await?;
        return Err(Error::SoldOut);
    }
    Ok(Deduction::default())
}
