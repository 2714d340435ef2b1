//! One server with everything that leads to it.
//!
//! Next to read: `shared_connection.rs`, `wakeups.rs`.

use super::{primary::Primary, shared_connection::SharedConnection, wakeups::Wakeups};
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
        let wakeups = Wakeups::new(primary.clone(), is_in_cluster, process, runtime, disconnects.clone());
        Arc::new(Self { primary, shared, wait_connections: Arc::default(), wakeups: Arc::new(wakeups) })
    }
}
