//! Curator's `InterProcessMutex`, re-entrant for an owner instead of a thread.
//!
//! 1. Queue with a node in the lock's directory; the first one holds the lock.
//! 2. Each waits for the one before it, and looks again when that one goes.
//! 3. An owner that holds it already asks the server whether its node is still there.
//! 4. Release: the last guard deletes the node and waits for the answer.
//!
//! Next to read: `engine/hold.rs`, how it is taken.

use super::ZkClient;
use super::engine::hold::{QueueHandle, handle};
use super::engine::queue::Recipe;
use crate::reentry::HoldKind;

/// The mutex's recipe: the first holds the lock; each other waits for the one before it.
pub(super) const MUTEX_RECIPE: Recipe = Recipe {
    kind: "ZkLock",
    marker: "lock-",
    markers: &["lock-"],
    waits_for: |_| true,
    lists_again: false,
    hold_kind: HoldKind::Exclusive,
};

impl ZkClient {
    /// Makes a contender for the lock at `path`, as `/curator/lock`: 64 KiB at most, or an acquire is
    /// [`Invalid`](crate::LockError::Invalid). Missing parents are created.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let guard = zk.lock("/curator/lock").acquire(Duration::from_secs(5)).await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lock(&self, path: &str) -> ZkLock {
        ZkLock(QueueHandle::new(self, &MUTEX_RECIPE, path))
    }
}

/// A contender for a lock in ZooKeeper; see [`ZkClient::lock`]. Without an [`owner`](Self::owner) each acquire is its
/// own owner, and a second one waits for the first to end.
///
/// Its fencing token is the zxid of the node's creation. Source: Curator's `InterProcessMutex`, and "Locks" in
/// ZooKeeper's "Recipes and Solutions".
///
/// # Survives
///
/// A holder that dies (its node goes with its session), a lost connection, a server restart, many waiters in one process.
///
/// # What breaks it
///
/// - a holder that is paused beyond its session and then writes, above all in a virtual machine that its host pauses, whose
///   clock does not see it: let the resource check the [`fence`](crate::Guard::fence);
/// - a node that somebody deletes by hand: waiters of other processes come in beside the holder, which learns of it only when
///   it re-enters or releases.
///
/// # Cost
///
/// Two requests per section if the previous holder was of this process, three or four if not, however many wait. Of each
/// section two write, and wait for the disks of a majority of the servers.
///
/// # Format
///
/// Curator's `InterProcessMutex`: in a container at the lock's path an ephemeral node
/// `_c_<uuid>-lock-NNNNNNNNNN` for each contender; the lowest number holds the lock.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let lock = zk.lock("/curator/lock").owner(zk.owner());
/// let outer = lock.acquire(Duration::from_secs(5)).await?;
/// let inner = lock.try_acquire().await?; // the same owner: at once
/// inner.release().await?;
/// outer.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkLock(QueueHandle);

handle!(ZkLock);
