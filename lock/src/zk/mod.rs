//! Locks in ZooKeeper, with the node names that Curator has made common.

use crate::{Guard, Lock, LockError};
use std::time::Duration;

/// How to reach ZooKeeper.
#[derive(Debug, Clone)]
pub struct ZkOptions {
    /// `host:port[,host:port…]`.
    pub connect: String,
    /// Before every path, as `/oversell`; empty for none.
    pub chroot: String,
    /// The session time-out that is asked for.
    pub session: Duration,
}

/// x
#[derive(Debug, Clone)]
pub struct ZkClient;

impl ZkClient {
    /// Starts to connect, in the background, and goes on as long as it takes.
    #[must_use]
    pub fn new(_options: ZkOptions) -> Self {
        Self
    }

    /// The live session's client.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] where there is none.
    pub fn session(&self) -> Result<zookeeper_client::Client, LockError> {
        unimplemented!()
    }

    /// A lock
    #[must_use]
    pub fn lock(&self, _path: &str) -> ZkLock {
        ZkLock
    }

    /// Releases what is held, ends the session
    pub async fn close(&self) {}
}

/// x
#[derive(Debug)]
pub struct ZkLock;

impl Lock for ZkLock {
    fn name(&self) -> &str {
        unimplemented!()
    }
    async fn acquire(&self, _wait: Duration) -> Result<Guard, LockError> {
        unimplemented!()
    }
}
