//! Curator's `DistributedBarrier`: while a node is there, everybody waits.
//!
//! 1. Closed: a persistent node at the barrier's path. Its data does not matter; ours is empty.
//! 2. To wait is to read the node with a watch. If there is none, the barrier is open.
//! 3. Removing the node lets all waiters go.
//! 4. A waiter whose node was deleted goes on even if another node is there when it looks again. It knows from the watch, or,
//!    after a lost connection, from the other creation zxid. Curator's waiter looks only whether there is a node, and sleeps
//!    through an opening that is followed by a closing.
//!
//! Next to read: `engine/request.rs`.

use super::ZkClient;
use super::engine::request::{change_once, create_persistent_node, repeat_request};
use super::engine::{Wait, errors_to_none, session::Session};
use crate::LockError;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout_at;
use zookeeper_client::{Error, EventType, OneshotWatcher};

/// A barrier in ZooKeeper; see [`ZkClient::barrier`]. Source: Curator's `DistributedBarrier`, and "Barriers" in
/// ZooKeeper's "Recipes and Solutions".
///
/// # Survives
///
/// Waiters that die, the death of the process that closed it (the node is persistent), a lost connection, a server restart, the
/// end of a waiter's session, and a barrier that is opened and closed again before a waiter has looked.
///
/// # What breaks it
///
/// Nothing ties the barrier to the process that closed it: if that one never removes it, all wait until somebody else does.
///
/// # Cost
///
/// One request to close or to open it, two at once for each look of a waiter.
///
/// # Format
///
/// Curator's `DistributedBarrier`: it is closed while there is a persistent node at its path, whatever its data.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let barrier = zk.barrier("/curator/barrier");
/// barrier.set().await?;
/// let opener = barrier.clone();
/// tokio::spawn(async move { opener.remove().await });
/// barrier.wait(Duration::from_secs(600)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkBarrier {
    client: ZkClient,
    path: String,
}

/// A closed barrier: its node's creation zxid, and the watch for its end.
struct ClosedBarrier {
    czxid: i64,
    watch: OneshotWatcher,
}

impl ZkClient {
    /// Makes a handle on the barrier at `path`, as `/curator/barrier`. Missing parents are created.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let barrier = zk.barrier("/curator/barrier");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn barrier(&self, path: &str) -> ZkBarrier {
        ZkBarrier { client: self.clone(), path: path.to_owned() }
    }
}

impl ZkBarrier {
    /// Returns the path of its node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Closes it; `false` if it was closed already.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let closed_here = zk.barrier("/curator/barrier").set().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: if the answer was lost it may be closed, and is not closed again, because somebody may
    /// have opened it meanwhile. [`LockError::Refused`]; [`LockError::Invalid`] for a name that is no path.
    ///
    /// # Cancel safety
    ///
    /// It may be closed or not.
    pub async fn set(&self) -> Result<bool, LockError> {
        let set = |client: Arc<Session>| async move { create_persistent_node(&client, &self.path, &[]).await };
        Ok(change_once(&self.client, &self.path, &[Error::NodeExists], set).await?.is_some())
    }

    /// Opens it for all waiters; `false` if it was open already.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let opened_here = zk.barrier("/curator/barrier").remove().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: if the answer was lost it may be open, and is not opened again, because somebody may have
    /// closed it meanwhile. [`LockError::Refused`]; [`LockError::Invalid`] for a name that is no path.
    ///
    /// # Cancel safety
    ///
    /// It may be open or not.
    pub async fn remove(&self) -> Result<bool, LockError> {
        let remove = |client: Arc<Session>| async move { client.delete(&self.path, None).await };
        Ok(change_once(&self.client, &self.path, &[Error::NoNode], remove).await?.is_some())
    }

    /// Waits until it is open, or was open since the call, at most `wait`.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// zk.barrier("/curator/barrier").wait(Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Timeout`] if it stayed closed for all of `wait`; [`LockError::Unavailable`] if a look had no connection
    /// for half of [`ZkOptions::timeout`](super::ZkOptions::timeout), or the wait none for as long as the session was sure.
    /// [`LockError::Refused`]; [`LockError::Invalid`] for a name that is no path.
    ///
    /// # Cancel safety
    ///
    /// Safe: a waiter leaves nothing on the server.
    pub async fn wait(&self, wait: Duration) -> Result<(), LockError> {
        let wait = Wait::new(wait);
        let mut first = None;
        while let Some(ClosedBarrier { czxid, watch }) = self.read_and_watch().await? {
            if *first.get_or_insert(czxid) != czxid {
                return Ok(());
            }
            let event = self.client.while_alive(wait, timeout_at(wait.end, watch.changed())).await?;
            let event = event.map_err(|_| wait.timeout_error(&self.path))?;
            if event.event_type == EventType::NodeDeleted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the node and watches it, after our server has caught up; `None` if the barrier is open.
    async fn read_and_watch(&self) -> Result<Option<ClosedBarrier>, LockError> {
        repeat_request(&self.client, &self.path, |client| async move {
            // Our server may lag behind the one on which another client has closed it. Requests of a session are
            // carried out in order.
            let caught_up = client.sync(&self.path);
            // `exists` would leave a watch behind if the barrier is open.
            let found = client.get_and_watch_data(&self.path);
            caught_up.await?;
            let node = errors_to_none(&[Error::NoNode], found.await)?;
            Ok(node.map(|(_, stat, watch)| ClosedBarrier { czxid: stat.czxid, watch }))
        })
        .await
    }
}
