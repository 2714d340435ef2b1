#![doc = include_str!("zk_fenced.md")]

use crate::stock::fenced;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "[003]",
    rank: Rank::After("zk-multi"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 380,
    names: &[Name::ZooKeeper("/distributed/zk-fenced"), Name::Fence],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under the lock with a fencing token, which the row checks.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.zk.lock(&job.zk_path("/distributed/zk-fenced"));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| fenced::fenced_read_then_write(ctx, job, lock.name(), fence, async |_| Ok(()))).await
}
