#![doc = include_str!("table_lock.md")]

use super::none;
use crate::stock::*;
use oversell_lock::mysql::RowDescription;

/// The name of the lock's row in `tb_lock`, for product 1.
const NAME: &str = "lock";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "4",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 140,
    names: &[Name::TableLock(NAME)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under the row, which stays if the holder dies.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.db.table_lock(&job.redis_name(NAME)).description(row_description(ctx, job, module_path!()));
    job.reach(Point::Waits).await;
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}

/// The texts for the further columns of the course's table: class, method, server and description.
pub(super) fn row_description(ctx: &Ctx, job: &Job, class: &str) -> RowDescription {
    RowDescription {
        class: class.to_owned(),
        method: "deduct".to_owned(),
        server: ctx.instance.clone(),
        desc: format!("商品 {} 减库存 {}", job.request.stock_id, job.request.who.as_deref().unwrap_or_default())
            .trim_end()
            .to_owned(),
    }
}
