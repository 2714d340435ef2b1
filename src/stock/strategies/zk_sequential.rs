#![doc = include_str!("zk_sequential.md")]

use super::none;
use crate::section::zk_node;
use crate::stock::*;

/// The mean time between two looks of a waiter: the course's 20 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.4.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 72,
    names: &[Name::ZooKeeper("/distributed/zk-sequential")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Queues, and looks about every 20 ms whether its node is the first. If its node is gone, it queues again.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let path = job.zk_path("/distributed/zk-sequential") + "/lock-";
    loop {
        let node = zk_node::enqueue(ctx, job, &path).await?;
        loop {
            let queue = node.siblings().await?;
            if !queue.iter().any(|name| name == node.name()) {
                break;
            }
            if queue.iter().all(|name| name.as_str() >= node.name()) {
                return zk_node::run_then_release(node, |fence| none::read_then_write(ctx, job, fence)).await;
            }
            poll::pause_before_retry(job, POLL_INTERVAL, || format!("lock {path}")).await?;
        }
    }
}
