//! Chapter 3: locks in ZooKeeper, from one node to Curator.

mod counts;
mod curator;
mod locks;
mod nodes;

use super::{Chapter, Cluster, NoVerdict};
use crate::bilingual::Bilingual;
use http::Method;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, Error as Zk};

pub(super) const CHAPTER: Chapter = Chapter {
    id: "3",
    title: Bilingual {
        zh: "基于 ZooKeeper 的分布式锁",
        en: "Distributed locks with ZooKeeper",
    },
    lessons: &[
        nodes::TYPES,
        nodes::WATCHES,
        nodes::DEAD_HOLDER,
        nodes::MAJORITY,
        locks::EPHEMERAL,
        locks::NEXT_TO_THE_TABLE,
        locks::SPINNING_ON_NUMBERED_NODES,
        locks::HERD,
        locks::WATCHING,
        locks::FASTER_THAN_SPINNING,
        locks::NEXT_TO_REDIS,
        locks::RE_ENTRY,
        locks::FAIR,
        curator::MUTEX,
        curator::SAME_OBJECT,
        curator::SEMAPHORE_MUTEX,
        curator::READ_WRITE,
        curator::MULTI,
        curator::LEASES,
        curator::LEASES_OF_THE_DEAD,
        curator::BARRIER,
        curator::DOUBLE_BARRIER,
        curator::THRESHOLD,
        counts::SHARED_COUNT,
        counts::TRY_SET,
        counts::ATOMIC_LONG,
    ],
};

/// The answer to a GET as JSON.
async fn got(on: &Cluster, url: &str) -> Result<Value, NoVerdict> {
    let answer = on
        .ask(Method::GET, url, &[("accept", "application/json")], None)
        .await?
        .success()?;
    Ok(answer.json()?)
}

/// How many nodes are below this one.
async fn below(zookeeper: &Client, path: &str) -> Result<usize, NoVerdict> {
    match zookeeper.list_children(path).await {
        Err(Zk::NoNode) => Ok(0),
        nodes => nodes.map(|nodes| nodes.len()).map_err(NoVerdict::failed),
    }
}

/// Waits until so many nodes are below this one.
async fn until_below(zookeeper: &Client, path: &str, wanted: usize) -> Result<(), NoVerdict> {
    let there = async {
        while below(zookeeper, path).await? != wanted {
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    let late = || NoVerdict::failed(format!("there are never {wanted} nodes below {path}"));
    timeout(Duration::from_secs(30), there)
        .await
        .unwrap_or_else(|_| Err(late()))
}
