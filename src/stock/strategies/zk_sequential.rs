//! §3.4.1 A queue of numbered nodes: the lowest has the lock, and everybody keeps looking at all of them.
//!
//! 1. Create an ephemeral, sequential node under `/distributed/zk-sequential`: a place in the queue.
//! 2. List the directory. The lowest number has the lock; every other looks again in about 20 ms.
//! 3. Read, then write one less; delete the node.
//!
//! What it survives: a holder that dies (its session ends, and its node with it); and it is fair. **What breaks it**: a
//! holder that is paused beyond its session and then writes. What it costs: with n waiters, every look is an answer of n
//! names, n times every 20 ms; and after a release the next still sleeps for 10 ms on average.
//!
//! Next: `zk_lock.rs`, where each is told when its predecessor goes.

use super::none;
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name, poll, zk_node as stage},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use std::time::Duration;
use zookeeper_client::CreateMode;

/// How often who waits looks again, on average.
const POLL: Duration = Duration::from_millis(20);

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "zk-sequential",
    chapter: "3.4.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 72,
    names: &[Name::ZooKeeper("/distributed/zk-sequential")],
    title: Bilingual {
        zh: "顺序节点：排队，人人反复看整个队列",
        en: "Numbered nodes: all keep looking at the whole queue",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_sequential.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let path = job.zk_path("/distributed/zk-sequential") + "/lock-";
    loop {
        // None: somebody has cleared the queue meanwhile.
        let Some(node) = stage::create(ctx, job, &path, CreateMode::EphemeralSequential).await?
        else {
            continue;
        };
        loop {
            let queue = node.siblings().await?;
            if !queue.iter().any(|name| name == node.name()) {
                break;
            }
            if queue.iter().all(|name| name.as_str() >= node.name()) {
                return stage::under(node, |fence| none::read_then_write(ctx, job, fence)).await;
            }
            poll::pause(job, POLL, || format!("lock {path}")).await?;
        }
    }
}
