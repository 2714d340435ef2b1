//! A mutex in ZooKeeper: Curator's `InterProcessMutex`, re-entrant for an owner instead of a thread.
//!
//! 1. Queue with a node `_c_<uuid>-lock-NNNNNNNNNN` in the lock's directory; the first in it holds the lock.
//! 2. Each waits for the one before it, and looks again when that one goes.
//! 3. An owner that holds it already asks the server whether its node is still there, and is in.
//! 4. Release: the last hold deletes the node, and waits for the answer.
//!
//! What it survives: a holder that dies (its session ends, and its node with it), a lost connection, a server
//! restart, many waiters in one process. **What breaks it**: a holder that is paused beyond its session, and then
//! writes; the [`fence`](crate::Guard::fence) lets the resource refuse that. A holder whose node somebody deletes by
//! hand is not told before it releases: ephemeral nodes go with their session, and that is what is watched.
//!
//! Next to read: `engine/queue.rs`.

use super::{
    Revocation, ZkClient,
    engine::{
        Wait,
        hold::{Hold, slot},
        insist,
        queue::{self, Recipe},
        unavailable, valid,
    },
    revocation::ask,
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};
use zookeeper_client::Error;

/// The first holds the lock; each of the others waits for the one before it.
pub(super) const MUTEX: Recipe =
    Recipe { marker: "lock-", markers: &["lock-"], waits_for: |_| true, lists_again: false };

impl ZkClient {
    /// A contender for the lock at `path`, as `/curator/lock`. Its parents are made where they are missing.
    #[must_use]
    pub fn lock(&self, path: &str) -> ZkLock {
        ZkLock { client: self.clone(), path: path.to_owned(), owner: None }
    }
}

/// A contender for a lock in ZooKeeper; see [`ZkClient::lock`]. Without an [`owner`](Self::owner) each acquire is an
/// owner of its own, and a second one waits for the first to end.
///
/// Its fencing token is the zxid of the node's creation.
#[derive(Debug, Clone)]
pub struct ZkLock {
    client: ZkClient,
    path: String,
    owner: Option<Owner>,
}

impl ZkLock {
    /// The same lock for `owner`, who may take it again while it holds it, in this process: the node goes with the
    /// last hold.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// [`acquire`](Lock::acquire), with an ear for those who [`revoke`](Self::revoke) the lock.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Lock::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Lock::acquire).
    pub async fn acquire_revocable(&self, wait: Duration) -> Result<(Guard, Revocation), LockError> {
        let hold = self.hold(wait).await?;
        let revocation = Revocation::of(hold.node.session().clone(), hold.node.path());
        Ok((hold.guard(&self.client, &self.path), revocation))
    }

    /// Asks who holds the lock now, in whatever process, to give it back; `false` where nobody holds it. It is for
    /// the holder to listen ([`acquire_revocable`](Self::acquire_revocable)) and to do so.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: the holder may have been asked or not.
    ///
    /// # Cancel safety
    ///
    /// Dropping it, the holder may have been asked or not.
    pub async fn revoke(&self) -> Result<bool, LockError> {
        valid(&self.path)?;
        let asked = async {
            let client = self.client.session()?;
            let children = match insist(|| client.list_children(&self.path)).await {
                Err(Error::NoNode) => return Ok(false),
                children => children.map_err(unavailable)?,
            };
            match queue::first(&children, MUTEX.markers) {
                Some(holder) => ask(&client, &format!("{}/{holder}", self.path)).await,
                None => Ok(false),
            }
        };
        self.client.while_up(asked).await?
    }

    async fn hold(&self, wait: Duration) -> Result<Arc<Hold>, LockError> {
        let wait = Wait::new(wait);
        let Some(owner) = self.owner else {
            return Ok(Hold::of(queue::turn(&self.client, &MUTEX, &self.path, wait).await?, None));
        };
        let mut slot = slot(&self.client.0.mutexes, &self.path, owner, wait).await?;
        if let Some(hold) = slot.exclusive.upgrade() {
            hold.again(&self.client, &self.path).await?;
            return Ok(hold);
        }
        let hold = Hold::of(queue::turn(&self.client, &MUTEX, &self.path, wait).await?, Some(&slot));
        slot.exclusive = Arc::downgrade(&hold);
        Ok(hold)
    }
}

impl Lock for ZkLock {
    fn name(&self) -> &str {
        &self.path
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        Ok(self.hold(wait).await?.guard(&self.client, &self.path))
    }
}
