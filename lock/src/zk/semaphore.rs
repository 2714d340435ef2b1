//! Curator's `InterProcessSemaphoreV2`, and its mutex with one lease.
//!
//! 1. Take the mutex `<path>/locks`: its holder alone waits for leases, in order of arrival.
//! 2. Make a node in `<path>/leases` for each lease that is wanted.
//! 3. Watch the directory. Once it has no more nodes than there are leases, ours are held; release the mutex.
//! 4. Release: delete the node of the lease.
//!
//! Only one contender watches the directory at a time, so there is no herd. A node there is not yet a held lease.
//!
//! Next to read: `engine/queue.rs`.

use super::engine::hold::NodeHold;
use super::engine::queue::{self, FencedNode, Recipe};
use super::engine::{
    Wait, check_path, errors_to_none, is_session_over, node::Node, repeat_until_answered, session::Session, to_lock_error,
};
use super::{ZkClient, mutex::MUTEX_RECIPE};
use crate::{Guard, Holder, Lock, LockError, inherent};
use futures::future::join_all;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout, timeout_at};
use zookeeper_client::Error;

/// The marker of a lease's node, as in Curator.
const LEASE_MARKER: &str = "lease-";
/// The recipe of a semaphore with one lease, to find and delete its holder: the first node holds it.
const SINGLE_LEASE_RECIPE: Recipe = Recipe { marker: LEASE_MARKER, markers: &[LEASE_MARKER], ..MUTEX_RECIPE };
/// The broken rule if no lease is asked for, or more than there are.
const LEASE_COUNT_RULE: &str = "at least 1 lease, and no more than the semaphore has";

/// A contender for the leases of a semaphore in ZooKeeper; see [`ZkClient::semaphore`]. Source: Curator's
/// `InterProcessSemaphoreV2`.
///
/// # Survives
///
/// A holder that dies (its leases come back with its session), a lost connection, a server restart, a dropped caller.
///
/// # What breaks it
///
/// - processes that do not agree on the number of leases: it is not stored on the server;
/// - a holder that is paused beyond its session.
///
/// A waiter for several leases holds up the waiters for one behind it.
///
/// # Cost
///
/// Four requests and one for each lease to acquire, one for each lease to release. Only one waiter is woken by a release.
///
/// # Format
///
/// Curator's `InterProcessSemaphoreV2`: a [`ZkLock`](super::ZkLock) at `<path>/locks`, and an ephemeral node
/// `<path>/leases/_c_<uuid>-lease-NNNNNNNNNN` for each lease.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let semaphore = zk.semaphore("/locks/semaphore", 5);
/// let leases = semaphore.acquire(2, Duration::from_secs(5)).await?;
/// for lease in leases {
///     lease.release().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkSemaphore {
    client: ZkClient,
    /// The kind of lock in its events.
    kind: &'static str,
    path: String,
    mutex_path: String,
    leases_path: String,
    max: u32,
}

/// A contender for a semaphore with one lease, and so a lock that is never re-entrant; see
/// [`ZkClient::semaphore_mutex`]. It does not exclude a [`ZkLock`](super::ZkLock) at the same path.
///
/// Its fencing token is the zxid of the lease's creation. Source: Curator's `InterProcessSemaphoreMutex`.
///
/// # Survives
///
/// What a [`ZkSemaphore`] survives.
///
/// # What breaks it
///
/// A holder that is paused beyond its session and then writes: let the resource check the [`fence`](crate::Guard::fence). A
/// process that uses the same path as a semaphore with more leases.
///
/// # Cost
///
/// Five requests to acquire, one to release: a [`ZkLock`](super::ZkLock) is cheaper.
///
/// # Format
///
/// That of a [`ZkSemaphore`] with one lease.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let mutex = zk.semaphore_mutex("/curator/semaphore-mutex");
/// let guard = mutex.acquire(Duration::from_secs(5)).await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkSemaphoreMutex(ZkSemaphore);

impl ZkClient {
    /// Makes a contender for the semaphore at `path`, with `max` leases (at least 1, or no acquire can succeed). Every
    /// process must give the same number, which is not stored on the server.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let semaphore = zk.semaphore("/locks/semaphore", 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn semaphore(&self, path: &str, max: u32) -> ZkSemaphore {
        let (mutex_path, leases_path) = (format!("{path}/locks"), format!("{path}/leases"));
        ZkSemaphore { client: self.clone(), kind: "ZkSemaphore", path: path.to_owned(), mutex_path, leases_path, max }
    }

    /// Makes a contender for the semaphore at `path` with one lease, as a lock that is not re-entrant.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let lock = zk.semaphore_mutex("/curator/semaphore-mutex");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn semaphore_mutex(&self, path: &str) -> ZkSemaphoreMutex {
        ZkSemaphoreMutex(ZkSemaphore { kind: "ZkSemaphoreMutex", ..self.semaphore(path, 1) })
    }
}

impl ZkSemaphore {
    /// Returns the path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Takes `leases` at once, all or none, waiting for them at most `wait`. Each is a guard of its own; its fencing
    /// token is the zxid of its node's creation.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let both = zk.semaphore("/locks/semaphore", 5).acquire(2, Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] if they were not free for all of `wait`, [`LockError::Unavailable`] if ZooKeeper is down or did
    /// not answer, [`LockError::Refused`], [`LockError::Invalid`] for none, and for more than there are.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: its nodes are deleted in the background.
    pub async fn acquire(&self, leases: u32, wait: Duration) -> Result<Vec<Guard>, LockError> {
        if leases == 0 || leases > self.max {
            return Err(LockError::invalid(&self.path, LEASE_COUNT_RULE));
        }
        check_path(&self.path)?;
        let take = self.take_leases(leases, wait);
        self.client.observer().report_acquire(self.kind, &self.path, take).await
    }

    /// Queues for the mutex, waits for the leases while holding it, and releases it; queues again if the session ends.
    async fn take_leases(&self, leases: u32, wait: Duration) -> Result<Vec<Guard>, LockError> {
        let wait = Wait::new(wait);
        loop {
            let mut turn = match queue::queue_and_wait(&self.client, &MUTEX_RECIPE, &self.mutex_path, wait).await {
                Err(LockError::Taken { .. }) => return Err(wait.taken_error(&self.path)),
                turn => turn?,
            };
            let attempt = self.create_leases_and_wait(turn.node.session(), leases, wait.end);
            let attempt = self.client.while_alive(wait, attempt).await?;
            timeout(self.client.timeout(), turn.node.delete(None)).await.ok();
            match attempt {
                Ok(Some(leases)) => {
                    let guard = |lease| NodeHold::of(lease, None).make_guard(&self.client, self.kind, &self.path);
                    return Ok(leases.into_iter().map(guard).collect());
                }
                Ok(None) => return Err(self.client.not_acquired_error(wait, &self.path)),
                Err(error) if is_session_over(&error) => {
                    tracing::debug!(%error, self.path, "queueing again")
                }
                Err(error) => return Err(to_lock_error(error)),
            }
        }
    }

    /// Takes `leases` if they are free now and no waiter is before us.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let one = zk.semaphore("/locks/semaphore", 5).try_acquire(1).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, leases: u32) -> Result<Vec<Guard>, LockError> {
        self.acquire(leases, Duration::ZERO).await
    }

    /// Makes a node for each lease and waits until the directory has at most `max`, in the session that has the mutex; `None`
    /// if the wait ended first: the nodes are then deleted.
    async fn create_leases_and_wait(
        &self,
        session: &Arc<Session>,
        wanted: u32,
        end: Instant,
    ) -> Result<Option<Vec<FencedNode>>, Error> {
        let mut leases = Vec::new();
        loop {
            while leases.len() < wanted as usize {
                let mut node = Node::sequential(session.clone(), &self.leases_path, LEASE_MARKER);
                let fence = node.create().await?;
                leases.push(FencedNode { node, fence });
            }
            let listed = repeat_until_answered(|| session.list_and_watch_children(&self.leases_path)).await;
            let Some((children, watch)) = errors_to_none(&[Error::NoNode], listed)? else {
                leases.clear();
                continue;
            };
            // A node of ours that somebody deleted is made again.
            leases.retain(|lease| children.iter().any(|child| child == lease.node.name()));
            if leases.len() < wanted as usize {
                continue;
            }
            if children.len() <= self.max as usize {
                return Ok(Some(leases));
            }
            if timeout_at(end, watch.changed()).await.is_err() {
                timeout(session.timeout, join_all(leases.iter_mut().map(|lease| lease.node.delete(None)))).await.ok();
                return Ok(None);
            }
        }
    }
}

impl ZkSemaphoreMutex {
    /// Returns the holder, in any process, as the server showed it a moment ago: the name of the first lease's node and,
    /// after a space, its data (Curator writes its host's address); `None` if there is none.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let held = zk.semaphore_mutex("/curator/semaphore-mutex").holder().await?.is_some();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`], and [`LockError::Invalid`] for a name that is no path.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn holder(&self) -> Result<Option<Holder>, LockError> {
        queue::holder(&self.0.client, &self.0.leases_path, SINGLE_LEASE_RECIPE.markers).await
    }

    /// Frees the lock, whoever holds it, for operators, by deleting its lease; returns whether it was held. The holder
    /// learns of it when it releases.
    ///
    /// # Errors
    ///
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    ///
    /// It may have been freed or not.
    pub async fn force_unlock(&self) -> Result<bool, LockError> {
        queue::force_unlock(&self.0.client, &SINGLE_LEASE_RECIPE, &self.0.leases_path).await
    }
}

impl Lock for ZkSemaphoreMutex {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let lease = self.0.acquire(1, wait).await?.pop();
        lease.ok_or_else(|| LockError::lost(&self.0.path))
    }
}

inherent!(ZkSemaphoreMutex);
