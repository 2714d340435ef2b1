#![doc = include_str!("zk_multi.md")]

use super::none;
use crate::stock::*;
use oversell_lock::MultiLock;

/// Its parts, in the order in which they are taken.
pub(crate) const PARTS: [&str; 3] = ["/curator/multi/1", "/curator/multi/2", "/curator/multi/3"];

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.7.4",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 170,
    names: &[Name::ZooKeeper(PARTS[0]), Name::ZooKeeper(PARTS[1]), Name::ZooKeeper(PARTS[2])],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes all three locks, and sells under them.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let parts = PARTS.map(|path| ctx.zk.lock(&job.zk_path(path)));
    let guard = MultiLock::new(parts.into()).acquire(job.wait_left()).await?;
    run_then_release(guard, |fence| none::read_then_write(ctx, job, fence)).await
}
