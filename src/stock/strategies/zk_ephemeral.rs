#![doc = include_str!("zk_ephemeral.md")]

use super::none;
use crate::section::zk_node;
use crate::stock::*;
use zookeeper_client::CreateMode;

/// The mean time between a waiter's attempts: the course's 200 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 340,
    names: &[Name::ZooKeeper("/distributed/zk-ephemeral")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Creates the lock's node, trying about every 200 ms while another has it, sells, and deletes the node.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let path = job.zk_path("/distributed/zk-ephemeral");
    loop {
        if let Some(node) = zk_node::create(ctx, job, &path, CreateMode::Ephemeral).await? {
            return zk_node::run_then_release(node, |fence| none::read_then_write(ctx, job, fence)).await;
        }
        job.reach(Point::Refused).await;
        poll::pause_before_retry(job, POLL_INTERVAL, || format!("lock {path}")).await?;
    }
}
