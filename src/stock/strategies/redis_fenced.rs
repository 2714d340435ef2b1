#![doc = include_str!("redis_fenced.md")]

use crate::stock::fenced;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "[003]",
    rank: Rank::After("redis-write"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::Redis],
    pace: 670,
    names: &[Name::Redis("fencedLock"), Name::Fence],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under the lock with a fencing token, which the row checks. For a product that does not exist, or if MySQL does not
/// tell, the counter of tokens is deleted again.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.redis.fenced_lock(&job.redis_name("fencedLock")).lease(job.watchdog_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    let lift = async |seen| lock.lift(seen).await;
    run_then_release(guard, async |fence| {
        let outcome = fenced::fenced_read_then_write(ctx, job, lock.name(), fence, lift).await;
        let has_met_row = matches!(outcome, Ok(_) | Err(Error::SoldOut | Error::Fenced { .. }));
        // Each number that a client makes up would leave a counter behind. If the row is there after all, it refuses the lower
        // tokens that follow, and the refusal lifts the counter.
        if !has_met_row && crate::stock::check_product(ctx, job.request.stock_id).await.is_err() {
            lock.forget().await?;
        }
        outcome
    })
    .await
}
