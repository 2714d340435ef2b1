#![doc = include_str!("etcd_lock.md")]

use super::none;
use crate::stock::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.7",
    rank: Rank::Beyond("zk-fenced"),
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::Etcd],
    pace: 100,
    names: &[Name::Etcd("/distributed/etcd-lock")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx.etcd()?.lock(&job.etcd_prefix("/distributed/etcd-lock")).lease(job.etcd_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
