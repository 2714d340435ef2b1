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
//! Next to read: `engine.rs`.

use super::{
    Revocation, ZkClient,
    engine::{self, Recipe, deadline, in_order},
    hold::{Hold, Holds, Seat},
    insist,
    revocation::ask,
    unavailable,
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::MutexGuard,
    time::{Instant, timeout_at},
};
use zookeeper_client::Error;

pub(super) const MUTEX: Recipe = Recipe { marker: "lock-", markers: &["lock-"], waits_for: predecessor };

/// The first holds the lock; each of the others waits for the one before it.
pub(super) fn predecessor(_: &[&str], own: usize) -> Option<usize> {
    own.checked_sub(1)
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
    pub(super) fn new(client: ZkClient, path: &str) -> Self {
        Self { client, path: path.to_owned(), owner: None }
    }

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
        let revocation = Revocation::of(hold.node.client().clone(), hold.node.path());
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
        let asked = async {
            let client = self.client.session()?;
            let children = match insist(|| client.list_children(&self.path)).await {
                Err(Error::NoNode) => return Ok(false),
                children => children.map_err(unavailable)?,
            };
            match in_order(&children, MUTEX.markers).first() {
                Some(holder) => ask(&client, &format!("{}/{holder}", self.path)).await,
                None => Ok(false),
            }
        };
        tokio::select! {
            biased;
            asked = asked => asked,
            error = self.client.given_up() => Err(error),
        }
    }

    async fn hold(&self, wait: Duration) -> Result<Arc<Hold>, LockError> {
        let Some(owner) = self.owner else {
            return Ok(Hold::of(engine::turn(&self.client, &MUTEX, &self.path, wait).await?, None));
        };
        let end = deadline(wait);
        let seat = self.client.seat(MUTEX.marker, &self.path, owner);
        let mut holds = sit(&seat, &self.path, wait, end).await?;
        if let Some(hold) = holds.exclusive.upgrade() {
            hold.again(&self.client, &self.path).await?;
            return Ok(hold);
        }
        let turn = engine::turn(&self.client, &MUTEX, &self.path, end - Instant::now()).await?;
        let hold = Hold::of(turn, Some(seat.clone()));
        holds.exclusive = Arc::downgrade(&hold);
        Ok(hold)
    }
}

/// The owner's seat, which another of its tasks may have while it waits for the lock.
pub(super) async fn sit<'a>(
    seat: &'a Seat,
    name: &str,
    wait: Duration,
    end: Instant,
) -> Result<MutexGuard<'a, Holds>, LockError> {
    timeout_at(end, seat.lock()).await.map_err(|_| LockError::Taken { name: name.to_owned(), waited: wait })
}

impl Lock for ZkLock {
    fn name(&self) -> &str {
        &self.path
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        Ok(self.hold(wait).await?.guard(&self.client, &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_waits_for_nobody_and_each_other_for_the_one_before_it() {
        let queue = ["a", "b", "c"];
        assert_eq!(predecessor(&queue, 0), None);
        assert_eq!(predecessor(&queue, 1), Some(0));
        assert_eq!(predecessor(&queue, 2), Some(1));
    }
}
