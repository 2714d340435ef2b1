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
//! Next to read: `semaphore.rs`.

use super::{
    ZkClient,
    engine::{
        Wait,
        hold::{Hold, Slot, slot},
        over,
        queue::{self, Recipe, Turn},
        unavailable,
    },
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};

const READ: Recipe = Recipe { marker: "__READ__", markers: MARKERS, waits_for: writes, lists_again: false };
const WRITE: Recipe = Recipe { marker: "__WRIT__", markers: MARKERS, waits_for: |_| true, lists_again: true };
const MARKERS: &[&str] = &["__READ__", "__WRIT__"];
const UPGRADE: &str = "its owner reads and cannot write before it has given that back: two of them would wait for ever";

fn writes(name: &str) -> bool {
    name.contains(WRITE.marker)
}

/// A read lock and a write lock in ZooKeeper; see [`ZkClient::rw_lock`].
#[derive(Debug, Clone)]
pub struct ZkRwLock {
    client: ZkClient,
    path: String,
}

/// A contender that reads, together with others. Without an [`owner`](Self::owner) each acquire is an owner of its own.
#[derive(Debug, Clone)]
pub struct ZkReadLock {
    lock: ZkRwLock,
    owner: Option<Owner>,
}

/// A contender that writes, alone. Without an [`owner`](Self::owner) each acquire is an owner of its own.
#[derive(Debug, Clone)]
pub struct ZkWriteLock {
    lock: ZkRwLock,
    owner: Option<Owner>,
}

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
        ZkReadLock { lock: self.clone(), owner: None }
    }

    /// A contender that writes.
    #[must_use]
    pub fn write(&self) -> ZkWriteLock {
        ZkWriteLock { lock: self.clone(), owner: None }
    }

    async fn turn(&self, recipe: &Recipe, wait: Wait) -> Result<Turn, LockError> {
        queue::turn(&self.client, recipe, &self.path, wait).await
    }

    /// A reading node at the place of the owner's writing one: nobody is before it.
    async fn read_under(&self, writer: &Hold, slot: &Slot) -> Result<Arc<Hold>, LockError> {
        let mut node = writer.node.beside(READ.marker);
        match self.client.while_up(node.create()).await? {
            Ok(fence) => Ok(Hold::of(Turn { node, fence }, Some(slot))),
            Err(error) if over(&error) => Err(LockError::Lost { name: self.path.clone() }),
            Err(error) => Err(unavailable(error)),
        }
    }
}

impl ZkReadLock {
    /// The same lock for `owner`, who may take it again while it reads or writes, in this process.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    async fn hold(&self, wait: Duration) -> Result<Arc<Hold>, LockError> {
        let (lock, client) = (&self.lock, &self.lock.client);
        let wait = Wait::new(wait);
        let Some(owner) = self.owner else {
            return Ok(Hold::of(lock.turn(&READ, wait).await?, None));
        };
        let mut slot = slot(&client.0.rw_locks, &lock.path, owner, wait).await?;
        if let Some(hold) = slot.shared.upgrade() {
            hold.again(client, &lock.path).await?;
            return Ok(hold);
        }
        let hold = match slot.exclusive.upgrade() {
            Some(writer) => {
                let hold = lock.read_under(&writer, &slot).await?;
                // Only now is it sure that no other writer came in between.
                writer.again(client, &lock.path).await?;
                hold
            }
            None => Hold::of(lock.turn(&READ, wait).await?, Some(&slot)),
        };
        slot.shared = Arc::downgrade(&hold);
        Ok(hold)
    }
}

impl ZkWriteLock {
    /// The same lock for `owner`, who may take it again while it writes, in this process.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    async fn hold(&self, wait: Duration) -> Result<Arc<Hold>, LockError> {
        let (lock, client) = (&self.lock, &self.lock.client);
        let wait = Wait::new(wait);
        let Some(owner) = self.owner else {
            return Ok(Hold::of(lock.turn(&WRITE, wait).await?, None));
        };
        let mut slot = slot(&client.0.rw_locks, &lock.path, owner, wait).await?;
        if let Some(hold) = slot.exclusive.upgrade() {
            hold.again(client, &lock.path).await?;
            return Ok(hold);
        }
        if slot.shared.strong_count() > 0 {
            return Err(LockError::Invalid { name: lock.path.clone(), rule: UPGRADE });
        }
        let hold = Hold::of(lock.turn(&WRITE, wait).await?, Some(&slot));
        slot.exclusive = Arc::downgrade(&hold);
        Ok(hold)
    }
}

/// Its fencing token is the zxid of the node's creation.
impl Lock for ZkReadLock {
    fn name(&self) -> &str {
        &self.lock.path
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        Ok(self.hold(wait).await?.guard(&self.lock.client, &self.lock.path))
    }
}

/// Its fencing token is the zxid of the node's creation. A writer that asks while its owner only reads is refused with
/// [`LockError::Invalid`].
impl Lock for ZkWriteLock {
    fn name(&self) -> &str {
        &self.lock.path
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        Ok(self.hold(wait).await?.guard(&self.lock.client, &self.lock.path))
    }
}
