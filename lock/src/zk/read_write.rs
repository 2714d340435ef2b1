//! Curator's `InterProcessReadWriteLock`: readers together, or one writer alone.
//!
//! 1. Both queue in one directory, with nodes that tell them apart.
//! 2. A writer waits for the node before it. A reader waits only for the writers before it, so a waiting writer holds back
//!    later readers and is not starved.
//! 3. An owner that writes may also read: its reading node takes the writing one's number (Curator 5.5 and later), and keeps
//!    that place when the writing one goes. An owner that only reads may not write: two such readers would wait for each other.
//!
//! Next to read: `engine/hold.rs`.

use super::ZkClient;
use super::engine::hold::{QueueHandle, handle};
use super::engine::queue::Recipe;
use crate::reentry::HoldKind;

/// The reader's recipe: it waits for the writers before it.
const READ_RECIPE: Recipe = Recipe {
    kind: "ZkReadLock",
    marker: MARKERS[0],
    waits_for: is_writer_node,
    hold_kind: HoldKind::Shared,
    lists_again: false,
    ..WRITE_RECIPE
};
/// The writer's recipe: it waits for everybody before it.
const WRITE_RECIPE: Recipe = Recipe {
    kind: "ZkWriteLock",
    marker: MARKERS[1],
    markers: MARKERS,
    waits_for: |_| true,
    lists_again: true,
    hold_kind: HoldKind::Exclusive,
};
/// The markers of a reader's node and of a writer's, as in Curator.
const MARKERS: &[&str] = &["__READ__", "__WRIT__"];

/// Whether a node of this name is a writer's.
fn is_writer_node(name: &str) -> bool {
    name.contains(WRITE_RECIPE.marker)
}

/// A read lock and a write lock in ZooKeeper; see [`ZkClient::rw_lock`].
///
/// Source: Curator's `InterProcessReadWriteLock`, and "Shared Locks" in ZooKeeper's "Recipes and Solutions".
///
/// # Survives
///
/// What a [`ZkLock`](super::ZkLock) survives. Readers do not starve writers.
///
/// # What breaks it
///
/// What breaks a [`ZkLock`](super::ZkLock).
///
/// # Cost
///
/// What a [`ZkLock`](super::ZkLock) costs; a writer that waited lists the directory once more.
///
/// # Format
///
/// Curator's `InterProcessReadWriteLock`, 5.5 and later: in a container at the lock's path an ephemeral node for each
/// contender, `_c_<uuid>-__READ__NNNNNNNNNN` or `_c_<uuid>-__WRIT__NNNNNNNNNN`.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let lock = zk.rw_lock("/curator/rwlock");
/// let one = lock.read().acquire(Duration::MAX).await?;
/// let other = lock.read().acquire(Duration::MAX).await?;
/// one.release().await?;
/// other.release().await?;
/// lock.write().acquire(Duration::from_secs(5)).await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkRwLock {
    client: ZkClient,
    path: String,
}

/// A contender that reads, together with others. Without an [`owner`](Self::owner) each acquire is its own owner; an
/// owner may also take it while it [writes](ZkWriteLock).
///
/// Its fencing token is the zxid of the node's creation.
///
/// # Survives
///
/// What a [`ZkLock`](super::ZkLock) survives.
///
/// # What breaks it
///
/// What breaks a [`ZkLock`](super::ZkLock).
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let (lock, owner) = (zk.rw_lock("/curator/rwlock"), zk.owner());
/// let writing = lock.write().owner(owner).acquire(Duration::from_secs(5)).await?;
/// let reading = lock.read().owner(owner).acquire(Duration::from_secs(5)).await?;
/// writing.release().await?; // reads on: no other writer came in between
/// reading.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkReadLock(QueueHandle);

/// A contender that writes, alone. Without an [`owner`](Self::owner) each acquire is its own owner. An owner that only
/// reads gets [`LockError::Invalid`](crate::LockError::Invalid).
///
/// Its fencing token is the zxid of the node's creation.
///
/// # Survives
///
/// What a [`ZkLock`](super::ZkLock) survives.
///
/// # What breaks it
///
/// What breaks a [`ZkLock`](super::ZkLock).
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let guard = zk.rw_lock("/curator/rwlock").write().acquire(Duration::from_secs(5)).await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkWriteLock(QueueHandle);

handle!(ZkReadLock, ZkWriteLock);

impl ZkClient {
    /// Makes a handle on the read lock and the write lock at `path`, as `/curator/rwlock`. Missing parents are created.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let guard = zk.rw_lock("/curator/rwlock").read().acquire(Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rw_lock(&self, path: &str) -> ZkRwLock {
        ZkRwLock { client: self.clone(), path: path.to_owned() }
    }
}

impl ZkRwLock {
    /// Makes a contender that reads.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let guard = zk.rw_lock("/curator/rwlock").read().try_acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn read(&self) -> ZkReadLock {
        ZkReadLock(QueueHandle::new(&self.client, &READ_RECIPE, &self.path))
    }

    /// Makes a contender that writes.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let guard = zk.rw_lock("/curator/rwlock").write().try_acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn write(&self) -> ZkWriteLock {
        ZkWriteLock(QueueHandle::new(&self.client, &WRITE_RECIPE, &self.path))
    }
}
