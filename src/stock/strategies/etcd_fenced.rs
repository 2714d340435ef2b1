#![doc = include_str!("etcd_fenced.md")]

use crate::stock::fenced;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.7",
    rank: Rank::Beyond("etcd-lock"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::Etcd],
    pace: 90,
    names: &[Name::Etcd("/distributed/etcd-fenced"), Name::Fence],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Sells under the lock with a fencing token, which the row checks.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let name = job.etcd_prefix("/distributed/etcd-fenced");
    let guard = ctx.etcd()?.lock(&name).lease(job.etcd_lease(ctx)).acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| fenced::fenced_read_then_write(ctx, job, &name, fence, async |_| Ok(()))).await
}
