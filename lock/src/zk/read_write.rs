//! Readers together, a writer alone: Curator's `InterProcessReadWriteLock`.
//!
//! 1. Both queue in one directory: `_c_<uuid>-__READ__NNNNNNNNNN` and `_c_<uuid>-__WRIT__NNNNNNNNNN`.
//! 2. A writer waits for the one before it, whichever that is. A reader waits for the writers before it, and for no
//!    reader: what comes behind a waiting writer waits too, so readers do not starve writers.
//! 3. An owner that writes may read at once: its reading node takes the writing one's sequence (Curator 5.5 and later),
//!    and stays at that place when the writing one goes. An owner that only reads may not write: two such readers would
//!    wait for each other for ever, so it is refused at once.
//!
//! What it survives: what the mutex survives. **What breaks it**: what breaks the mutex.
//!
//! Next to read: `engine/hold.rs`, where re-entry is.

use super::ZkClient;
use super::engine::hold::{Handle, handle};
use super::engine::queue::Recipe;

const READ: Recipe = Recipe { marker: MARKERS[0], waits_for: writes, shared: true, lists_again: false, ..WRITE };
const WRITE: Recipe = Recipe {
    marker: MARKERS[1],
    markers: MARKERS,
    waits_for: |_| true,
    lists_again: true,
    shared: false,
    holds: |zk| &zk.0.rw_locks,
};
const MARKERS: &[&str] = &["__READ__", "__WRIT__"];

fn writes(name: &str) -> bool {
    name.contains(WRITE.marker)
}

/// A read lock and a write lock in ZooKeeper; see [`ZkClient::rw_lock`].
#[derive(Debug, Clone)]
pub struct ZkRwLock {
    client: ZkClient,
    path: String,
}

/// A contender that reads, together with others. Without an [`owner`](Self::owner) each acquire is an owner of its own;
/// an owner may also take it while it [writes](ZkWriteLock).
///
/// Its fencing token is the zxid of the node's creation.
#[derive(Debug, Clone)]
pub struct ZkReadLock(Handle);

/// A contender that writes, alone. Without an [`owner`](Self::owner) each acquire is an owner of its own. One that asks
/// while its owner only reads is refused with [`LockError::Invalid`](crate::LockError::Invalid).
///
/// Its fencing token is the zxid of the node's creation.
#[derive(Debug, Clone)]
pub struct ZkWriteLock(Handle);

handle!(ZkReadLock, ZkWriteLock);

impl ZkClient {
    /// The read lock and the write lock at `path`.
    #[must_use]
    pub fn rw_lock(&self, path: &str) -> ZkRwLock {
        ZkRwLock { client: self.clone(), path: path.to_owned() }
    }
}

impl ZkRwLock {
    /// A contender that reads.
    #[must_use]
    pub fn read(&self) -> ZkReadLock {
        ZkReadLock(Handle::new(&self.client, &READ, &self.path))
    }

    /// A contender that writes.
    #[must_use]
    pub fn write(&self) -> ZkWriteLock {
        ZkWriteLock(Handle::new(&self.client, &WRITE, &self.path))
    }
}
