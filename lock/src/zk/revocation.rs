//! Asking a holder to leave: Curator's revocation. The holder may, and need not, do as it is asked.
//!
//! 1. Who wants the lock writes `__REVOKE__` into the holder's node.
//! 2. The holder watches the data of its own node, where it has said that it wants to know.
//!
//! What it survives: a lost connection, a holder that goes away meanwhile. **What breaks it**: a holder that does not
//! listen; nothing forces it.
//!
//! Next to read: `engine/request.rs`, for the recipes that do not queue.

use super::engine::{insist, over, session::Session};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::sleep;
use zookeeper_client::Error;

/// How long a holder waits before it listens again where the server has refused to tell it.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) const REVOKE: &[u8] = b"__REVOKE__";

/// A holder's ear for those who ask it to give the lock back; see
/// [`ZkLock::acquire_revocable`](super::ZkLock::acquire_revocable).
///
/// ```no_run
/// # use oversell_lock::{LockError};
/// # use std::time::Duration;
/// # async fn example(lock: oversell_lock::zk::ZkLock) -> Result<(), LockError> {
/// let (guard, revocation) = lock.acquire_revocable(Duration::from_secs(5)).await?;
/// revocation.asked().await; // somebody has called `revoke`
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Revocation {
    session: Arc<Session>,
    path: String,
}

impl Revocation {
    pub(super) fn of(session: Arc<Session>, path: String) -> Self {
        Self { session, path }
    }

    /// Completes once somebody has asked the holder to give the lock back, also where that was before the call. It
    /// never completes once the lock is given back or lost: [`Guard::lost`](crate::Guard::lost) tells that.
    ///
    /// ```no_run
    /// # async fn example(guard: oversell_lock::Guard, revocation: oversell_lock::zk::Revocation) {
    /// tokio::select! {
    ///     () = revocation.asked() => { /* give the lock back as soon as that is possible */ }
    ///     () = guard.lost() => { /* stop at once */ }
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// It may be dropped and called again at any time.
    pub async fn asked(&self) {
        loop {
            match insist(|| self.session.get_and_watch_data(&self.path)).await {
                Ok((data, _, _)) if data == REVOKE => return,
                Ok((_, _, watch)) => drop(watch.changed().await),
                Err(Error::NoNode) => return pending().await,
                Err(error) if over(&error) => return pending().await,
                Err(error) => {
                    tracing::warn!(%error, path = self.path, "not heard whether the lock is asked for");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}
