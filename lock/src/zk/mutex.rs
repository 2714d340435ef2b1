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
//! Next to read: `engine/hold.rs`, how it is taken.

use super::engine::hold::{Handle, handle};
use super::engine::{insist, queue::Recipe, queue::first, request::ask};
use super::{Revocation, ZkClient, revocation::REVOKE};
use crate::{Guard, LockError};
use std::time::Duration;
use zookeeper_client::Error;

/// The first holds the lock; each of the others waits for the one before it.
pub(super) const MUTEX: Recipe = Recipe {
    marker: "lock-",
    markers: &["lock-"],
    waits_for: |_| true,
    lists_again: false,
    shared: false,
};

impl ZkClient {
    /// A contender for the lock at `path`, as `/curator/lock`. Its parents are made where they are missing.
    ///
    /// ```no_run
    /// # use oversell_lock::{Lock, LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let guard = zk.lock("/curator/lock").acquire(Duration::from_secs(5)).await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lock(&self, path: &str) -> ZkLock {
        ZkLock(Handle::new(self, &MUTEX, path))
    }
}

/// A contender for a lock in ZooKeeper; see [`ZkClient::lock`]. Without an [`owner`](Self::owner) each acquire is an
/// owner of its own, and a second one waits for the first to end.
///
/// Its fencing token is the zxid of the node's creation. Source: Curator's `InterProcessMutex`, and "Locks" in
/// ZooKeeper's "Recipes and Solutions".
///
/// ```no_run
/// # use oversell_lock::{Lock, LockError, zk::ZkClient};
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
pub struct ZkLock(Handle);

handle!(ZkLock);

impl ZkLock {
    /// [`acquire`](crate::Lock::acquire), with an ear for those who [`revoke`](Self::revoke) the lock.
    /// Source: Curator's `Revocable.makeRevocable`.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let (guard, revocation) = zk.lock("/curator/lock").acquire_revocable(Duration::from_secs(5)).await?;
    /// tokio::select! {
    ///     () = revocation.asked() => {}
    ///     () = async { /* the work */ } => {}
    /// }
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](crate::Lock::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](crate::Lock::acquire).
    pub async fn acquire_revocable(
        &self,
        wait: Duration,
    ) -> Result<(Guard, Revocation), LockError> {
        let hold = self.0.take(wait).await?;
        let revocation = Revocation::of(hold.node.session().clone(), hold.node.path());
        Ok((hold.guard(&self.0.client, &self.0.path), revocation))
    }

    /// Asks who holds the lock now, in whatever process, to give it back; `false` where nobody holds it. It is for
    /// the holder to listen ([`acquire_revocable`](Self::acquire_revocable)) and to do so. Source: Curator's
    /// `Revoker.attemptRevoke`.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let asked = zk.lock("/curator/lock").revoke().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: the holder may have been asked or not. [`LockError::Refused`],
    /// [`LockError::Invalid`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it, the holder may have been asked or not.
    pub async fn revoke(&self) -> Result<bool, LockError> {
        let path = &self.0.path;
        ask(&self.0.client, path, |session| async move {
            let Some(holder) = first(&session, path, MUTEX.markers).await? else {
                return Ok(false);
            };
            let holder = format!("{path}/{holder}");
            match insist(|| session.set_data(&holder, REVOKE, None)).await {
                Err(Error::NoNode) => Ok(false),
                asked => asked.map(|_| true),
            }
        })
        .await
    }
}
