//! The servers of one client: one, or the nodes of a cluster.
//!
//! Next to read: `node.rs`, `connection.rs`, `cluster.rs`.

use super::{
    cluster::Cluster,
    connection::Connection,
    keys::slot_of_key,
    node::RedisNode,
    options::{RedisOptions, ServerAddresses},
    primary::Primary,
};
use crate::LockError;
use std::sync::Arc;
use tokio::{runtime::Handle, sync::watch};

/// The servers of one client: a single one, or the primary that Sentinels name, or the nodes of a cluster.
#[derive(Debug, Clone)]
pub(super) enum Servers {
    One(Arc<RedisNode>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// Checks the options ([`LockError::Invalid`]) and makes the servers, not yet connected; `disconnects` is notified when a
    /// connection is lost or the primary moves.
    pub(super) fn new(options: &RedisOptions, runtime: &Handle, disconnects: &watch::Sender<()>) -> Result<Self, LockError> {
        let ServerAddresses { client, sentinels, seeds } = options.addresses()?;
        if let Some(seeds) = seeds {
            let cluster = Cluster::new(client, seeds, options, runtime, disconnects);
            return Ok(Self::Cluster(cluster));
        }
        let primary = Primary::new(client, sentinels, options.timeout, disconnects.clone());
        let node = RedisNode::new(primary, false, &options.process, runtime, disconnects);
        Ok(Self::One(node))
    }

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
