//! Redisson on a Redis Cluster, beside ours: each side excludes the other, and wakes it by a message.

#[path = "../contract/redis/own_cluster.rs"]
#[allow(dead_code, reason = "nothing here moves a slot or stops a node")]
mod own_cluster;

use super::support::*;
use oversell_lock::{Lease, Lock, LockError, redis::RedisClient};
use own_cluster::OwnCluster;
use std::time::Duration;
use tokio::time::Instant;

/// Nobody waits for its end: without a message Java would.
const HOUR: Lease = Lease::Fixed(Duration::from_secs(3600));
const ROUNDS: usize = 5;

pub(crate) async fn each_side_excludes_and_wakes_the_other(library: Library) -> Result<()> {
    let cluster = OwnCluster::start().await?;
    let nodes = cluster.nodes.iter();
    let nodes: Vec<_> = nodes.map(|node| format!("redis://{}", node.way.address())).collect();
    let peer = Peer::start(library, "cluster", &nodes.join(","), None).await?;
    let ours = RedisClient::new(cluster.options())?;
    for kind in ["lock", "fair", "write"] {
        for round in 0..ROUNDS {
            let name = format!("/cluster/{kind}-{round}");
            match kind {
                "lock" => one(&peer, kind, &name, ours.lock(&name).lease(HOUR)).await,
                "fair" => one(&peer, kind, &name, ours.fair_lock(&name).lease(HOUR)).await,
                _ => one(&peer, kind, &name, ours.rw_lock(&name).write().lease(HOUR)).await,
            }
            .with_context(|| format!("{kind}, round {round}"))?;
            let left = cluster.keys(&name).await;
            let left: Vec<_> = left.iter().filter(|key| !key.ends_with(":seen")).collect();
            ensure!(left.is_empty(), "left: {left:?}");
        }
    }
    peer.stop().await;
    Ok(())
}

async fn one(peer: &Peer, kind: &str, name: &str, lock: impl Lock + Clone + 'static) -> Result<()> {
    let held = lock.acquire(SOON).await?;
    peer.must("java", format!("try {kind} {name}"), false).await?;
    let mut waits = peer.tell("java", format!("acquire {kind} {name}"));
    peer.round_trip().await?;
    tokio::time::sleep(SHORT).await;
    waits.ensure_pending()?;
    let freed = Instant::now();
    held.release().await?;
    waits.within(SOON).await.context("java is not woken")?;
    let java = freed.elapsed();
    let beside = lock.try_acquire().await;
    ensure!(matches!(beside, Err(LockError::Taken { .. })), "{beside:?}");
    let waiter = {
        let lock = lock.clone();
        tokio::spawn(async move { lock.acquire(SOON).await })
    };
    tokio::time::sleep(SHORT).await;
    ensure!(!waiter.is_finished(), "ours is in beside java");
    let freed = Instant::now();
    peer.ask("java", format!("release {kind} {name}")).await?;
    let guard = waiter.await??;
    println!("{kind}: java in after {java:?}, ours after {:?}", freed.elapsed());
    Ok(guard.release().await?)
}
