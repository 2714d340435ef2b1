#![doc = include_str!("single_update_merged.md")]

use crate::stock::merged::{self, TakeMany, TakeOutcome};
use crate::stock::*;

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.1",
    rank: Rank::Beyond("single-update"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 13_000,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes this many pieces if there are as many, else changes no row.
const TAKE: &str = "UPDATE db_stock SET count = count - ?, version = version + 1 WHERE id = ? AND count >= ?";

/// Takes a piece together with the other requests of this instance.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    merged::deduct::<OneUpdate>(ctx, job).await
}

/// Takes the pieces of a group by one UPDATE; if there are fewer, by another one as many as there are.
struct OneUpdate;

impl TakeMany for OneUpdate {
    const AWAITED: &'static str = "row in db_stock";

    async fn take_many(ctx: &Ctx, stock_id: i64, mut wanted: i64, wait: Duration) -> Result<TakeOutcome, Error> {
        let job = Job::new(stock_id, Duration::ZERO, wait);
        loop {
            let take = sqlx::query(TAKE).bind(wanted).bind(stock_id).bind(wanted);
            if mysql::execute(ctx, &job, take).await? == 1 {
                return Ok(TakeOutcome::Pieces(wanted, None));
            }
            wanted = wanted.min(mysql::read(ctx, &job, READ_STOCK).await?.count);
            if wanted <= 0 {
                return Ok(TakeOutcome::SoldOut);
            }
        }
    }
}
