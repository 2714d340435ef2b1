//! The servers of one run.

use super::{etcd::Etcd, ours::Process, redis::Redis, support::Result, zookeeper::ZooKeeper};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) enum Server {
    Redis(Redis),
    ZooKeeper(ZooKeeper),
    Etcd(Etcd),
}

impl Server {
    /// A name that no other test uses, and that is no prefix of another's.
    pub(crate) fn name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        format!("/interop/{:06}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) async fn process(&self) -> Result<Process> {
        match self {
            Self::Redis(redis) => redis.process().await,
            Self::ZooKeeper(zookeeper) => zookeeper.process().await,
            Self::Etcd(etcd) => etcd.process(),
        }
    }

    pub(crate) fn address(&self) -> &str {
        match self {
            Self::Redis(redis) => &redis.url,
            Self::ZooKeeper(zookeeper) => &zookeeper.connect,
            Self::Etcd(etcd) => &etcd.url,
        }
    }
}
