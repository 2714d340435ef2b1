//! §3.3 An ephemeral node: who makes it has the lock, and it goes with its maker's session.
//!
//! 1. Create the ephemeral node `/distributed/zk-ephemeral`; where there is one already, try again in about 200 ms.
//! 2. Read, then write one less; delete the node.
//!
//! What it survives: a holder that dies (its session ends, and the node with it). **What breaks it**: a holder that is
//! paused beyond its session and then writes. What it costs: nobody is told that the node has gone, so all ask again and
//! again, and the lock is free while they sleep.
//!
//! Points for a replay: `refused`, `locked`, `read`, `written`.
//!
//! Next: `zk_sequential.rs`, where they queue.

use super::none;
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name, Point, poll, zk_node as stage},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use std::time::Duration;
use zookeeper_client::CreateMode;

/// How often who waits tries again, on average.
const POLL: Duration = Duration::from_millis(200);

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "zk-ephemeral",
    chapter: "3.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 340,
    names: &[Name::ZooKeeper("/distributed/zk-ephemeral")],
    title: Bilingual {
        zh: "临时节点：谁建成谁拿到，别人反复重试",
        en: "An ephemeral node: who makes it has the lock",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过会话",
        en: "a holder that is paused beyond its session",
    },
    source: include_str!("zk_ephemeral.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let path = job.zk_path("/distributed/zk-ephemeral");
    loop {
        if let Some(node) = stage::create(ctx, job, &path, CreateMode::Ephemeral).await? {
            return stage::under(node, |fence| none::read_then_write(ctx, job, fence)).await;
        }
        job.at(Point::Refused).await;
        poll::pause(job, POLL, || format!("lock {path}")).await?;
    }
}
