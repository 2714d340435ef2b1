#![doc = include_str!("zk_lock_as_printed.md")]

use super::{none, zk_sequential_as_printed::pre_node};
use crate::section::zk_node::{self, Node};
use crate::stock::*;
use tokio::time::timeout;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.4.2",
    rank: Rank::AsPrinted("zk-lock"),
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 460,
    names: &[Name::ZooKeeper("/distributed/zk-lock-as-printed")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let path = job.zk_path("/distributed/zk-lock-as-printed") + "/lock-";
    let node = lock(ctx, job, &path).await?;
    zk_node::run_then_release(node, |fence| none::read_then_write(ctx, job, fence)).await
}

/// The printed constructor and `lock()`: queues, waits once for the node before its own, and returns without a second look.
pub(super) async fn lock(ctx: &Ctx, job: &Job, path: &str) -> Result<Node, Error> {
    let node = zk_node::enqueue(ctx, job, path).await?;
    let Some(pre_node) = pre_node(&node).await? else {
        return Ok(node);
    };
    let Some(event) = node.watch(&pre_node).await? else {
        return Ok(node);
    };
    // `countDownLatch.await(); return;` without a second look.
    match timeout(job.wait_left(), event.changed()).await {
        Ok(_) => Ok(node),
        Err(_) => Err(job.timed_out(&format!("lock {path}"))),
    }
}
