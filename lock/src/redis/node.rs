//! One server with everything that leads to it, and the servers of a client: one, or the nodes of a cluster.
//!
//! Next to read: `connection.rs`, `cluster.rs`.

use super::{
    cluster::{Cluster, slot_of_key},
    connection::{Connection, SharedConnection},
    primary::Primary,
    wakeups::Wakeups,
};
use crate::Process;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use tokio::{runtime::Handle, sync::watch};

/// One server, or the primary that Sentinels name, and the connections to it.
#[derive(Debug)]
pub(super) struct RedisNode {
    pub(super) primary: Primary,
    pub(super) shared: Arc<SharedConnection>,
    /// Idle connections for `WAIT`; each is taken out while it is used.
    pub(super) wait_connections: Arc<Mutex<Vec<MultiplexedConnection>>>,
    pub(super) wakeups: Arc<Wakeups>,
}

/// The servers of one client: a single one, or the primary that Sentinels name, or the nodes of a cluster.
#[derive(Debug, Clone)]
pub(super) enum Servers {
    One(Arc<RedisNode>),
    Cluster(Arc<Cluster>),
}

impl RedisNode {
    /// A server that nothing is connected to yet.
    pub(super) fn new(
        primary: Primary,
        is_in_cluster: bool,
        process: &Process,
        runtime: &Handle,
        disconnects: &watch::Sender<()>,
    ) -> Arc<Self> {
        let shared = SharedConnection::new(primary.clone(), runtime.clone(), disconnects.clone());
        let wakeups = Wakeups::new(
            primary.clone(),
            is_in_cluster,
            process,
            runtime,
            disconnects.clone(),
        );
        Arc::new(Self {
            primary,
            shared,
            wait_connections: Arc::default(),
            wakeups: Arc::new(wakeups),
        })
    }
}

impl Servers {
    /// Makes the connection for commands to these servers, which connects at the first one.
    pub(super) fn connection(&self) -> Connection {
        match self {
            Self::One(node) => Connection::to_server(Arc::clone(&node.shared)),
            Self::Cluster(cluster) => Connection::to_cluster(Arc::clone(cluster)),
        }
    }

    /// Returns the server that has this key; `None` if the present map of a cluster has none.
    pub(super) fn node_of(&self, key: &str) -> Option<Arc<RedisNode>> {
        match self {
            Self::One(node) => Some(Arc::clone(node)),
            Self::Cluster(cluster) => cluster.node_of_slot(slot_of_key(key.as_bytes())),
        }
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }
}
