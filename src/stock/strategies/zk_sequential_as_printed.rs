#![doc = include_str!("zk_sequential_as_printed.md")]

use super::none;
use crate::section::zk_node::{self, Node};
use crate::stock::*;

/// The mean time between two looks of a waiter: the course's 20 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.4.1",
    rank: Rank::AsPrinted("zk-sequential"),
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 72,
    names: &[Name::ZooKeeper("/distributed/zk-sequential-as-printed")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Queues, waits until the printed code finds no node before its own, and sells.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let path = job.zk_path("/distributed/zk-sequential-as-printed") + "/lock-";
    let node = zk_node::enqueue(ctx, job, &path).await?;
    while pre_node(&node).await?.is_some() {
        poll::pause_before_retry(job, POLL_INTERVAL, || format!("lock {path}")).await?;
    }
    zk_node::run_then_release(node, |fence| none::read_then_write(ctx, job, fence)).await
}

/// The printed `getPreNode`: the sibling with the greatest number below this node's, number 0 excepted, if there is one.
pub(super) async fn pre_node(node: &Node) -> Result<Option<String>, Error> {
    let mut flag = 0;
    let mut pre_node = None;
    for name in node.siblings().await? {
        let serial = serial(&name);
        if serial < self::serial(node.name()) && serial > flag {
            flag = serial;
            pre_node = Some(name);
        }
    }
    Ok(pre_node)
}

/// The number after the last `-` of a node's name; 0 if there is none.
fn serial(name: &str) -> i64 {
    let (_, number) = name.rsplit_once('-').unwrap_or_default();
    number.parse().unwrap_or_default()
}
