#![doc = include_str!("single_update_node_buckets.md")]

use super::single_update_buckets;
use crate::stock::{retried, *};

/// A node is one of the Galera cluster; a commit that the cluster refuses is tried again.
pub(super) const STRATEGY: StrategySpec = StrategySpec {
    rank: Rank::Beyond("single-update-retried"),
    pace: 4_500,
    deduct: |ctx, job| Box::pin(retried::deduct(ctx, job, |ctx, job| Box::pin(deduct(ctx, job)))),
    ..single_update_buckets::STRATEGY
};

/// The number of the node that answers: Galera gives each member another one, and a server alone has 1.
const NODE: &str = "SELECT CAST(@@GLOBAL.auto_increment_offset AS UNSIGNED)";

/// Takes a piece out of the bucket of the node that answers.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let node = mysql::within_limit(job, sqlx::query_scalar(NODE).fetch_one(&mut *conn)).await;
    let bucket = mysql::return_to_pool(conn, node)?;
    single_update_buckets::take_from(ctx, job, bucket).await
}
