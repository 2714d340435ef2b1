//! Curator's `SharedCount`: a number that all processes see.
//!
//! 1. A node holds the number. If it is missing, it is made with the seed.
//! 2. A set is conditional on the node's version: a contender that read an older one is refused.
//! 3. A listener reads the node with a watch, and again whenever that fires. It sees the latest number, not every one.
//!
//! Next to read: `engine/request.rs`.

use super::ZkClient;
use super::engine::request::{change_once, repeat_request, request_creating_missing_node, sync_server};
use super::engine::{is_session_over, is_unanswered, to_lock_error};
use crate::LockError;
use std::time::Duration;
use tokio::{sync::watch, time::sleep};
use zookeeper_client::Error;

/// How long a listener pauses after a refusal before it reads again; a refusal lasts until somebody changes a right.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A handle on a number that all processes see; see [`ZkClient::shared_count`]. Source: Curator's `SharedCount`.
///
/// # Survives
///
/// The death of every process, a lost connection, a server restart, the end of a session (a listener goes on in the next one).
///
/// # What breaks it
///
/// - [`set`](Self::set) is unconditional and overwrites what another has just written;
/// - a node that is deleted and made again starts at version 0, so an old version may match once more;
/// - a set whose answer is lost may have been made.
///
/// # Cost
///
/// One or two requests to read, one or two to change. A change waits for the disks of a majority of the servers.
///
/// # Format
///
/// Curator's `SharedCount`: a persistent node with 4 bytes, big-endian.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let count = zk.shared_count("/curator/count", 0);
/// let mut seen = count.get().await?;
/// while let Err(newer) = count.try_set(seen, seen.value + 1).await? {
///     seen = newer;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkSharedCount {
    client: ZkClient,
    path: String,
    seed: i32,
}

/// A number and the version of its node, for [`ZkSharedCount::try_set`].
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let seen = zk.shared_count("/curator/count", 0).get().await?;
/// println!("{} after {} changes", seen.value, seen.version);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versioned {
    /// The number.
    pub value: i32,
    /// How often it was set since its node was made.
    pub version: i32,
}

impl ZkClient {
    /// Makes a handle on the number at `path`, as `/curator/count`, which is `seed` before it is first set. Missing
    /// parents are created.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let count = zk.shared_count("/curator/count", 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn shared_count(&self, path: &str, seed: i32) -> ZkSharedCount {
        ZkSharedCount { client: self.clone(), path: path.to_owned(), seed }
    }
}

impl ZkSharedCount {
    /// Returns the path of its node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Returns the number as it is now; makes a missing node with the seed.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let now = zk.shared_count("/curator/count", 0).get().await?.value;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`]; [`LockError::Invalid`] if the node holds something else.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn get(&self) -> Result<Versioned, LockError> {
        sync_server(&self.client, &self.path).await?;
        let found = repeat_request(&self.client, &self.path, |client| async move {
            request_creating_missing_node(&client, &self.path, &self.seed.to_be_bytes(), || client.get_data(&self.path)).await
        });
        let (bytes, stat) = found.await?;
        self.decode(&bytes, stat.version)
    }

    /// Sets the number to `value` unconditionally, and returns it with its new version.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// zk.shared_count("/curator/count", 0).set(7).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]. If the answer was lost, it may have been set; it is not set again, because another
    /// may have set it since. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether it is set.
    pub async fn set(&self, value: i32) -> Result<Versioned, LockError> {
        self.write(value, None).await?.ok_or_else(|| to_lock_error(Error::BadVersion))
    }

    /// Sets the number to `value` if it was not set since `seen` was read. The inner result is the present number: `Ok` if it
    /// was set here, `Err` if `seen` is old and nothing was changed.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let count = zk.shared_count("/curator/count", 0);
    /// let seen = count.get().await?;
    /// let is_set = count.try_set(seen, seen.value + 1).await?.is_ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]. If the answer was lost, it may have been set. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether it is set.
    pub async fn try_set(&self, seen: Versioned, value: i32) -> Result<Result<Versioned, Versioned>, LockError> {
        match self.write(value, Some(seen.version)).await? {
            Some(set) => Ok(Ok(set)),
            None => self.get().await.map(Err),
        }
    }

    /// Follows the number: the receiver has the present number, and the latest one after each change. Data that is no number is
    /// passed over, and a missing node is made with the seed. It continues through lost connections and sessions, and keeps
    /// the client's session until it is dropped or the client is [closed](ZkClient::close).
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let mut numbers = zk.shared_count("/curator/count", 0).listen().await?;
    /// while numbers.changed().await.is_ok() {
    ///     println!("{}", numbers.borrow_and_update().value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// Safe. The receiver ends once the client is closed.
    pub async fn listen(&self) -> Result<watch::Receiver<Versioned>, LockError> {
        let (sender, receiver) = watch::channel(self.get().await?);
        let count = self.clone();
        self.client.tasks().runtime().spawn(async move {
            tokio::select! {
                () = sender.closed() => {}
                () = count.client.wait_until_ending() => {}
                () = count.publish_changes(&sender) => {}
            }
        });
        Ok(receiver)
    }

    /// Sends each change of the number to `sender`, without end; makes a missing node with the seed.
    async fn publish_changes(&self, sender: &watch::Sender<Versioned>) {
        loop {
            let client = self.client.wait_until_live().await;
            let look = || client.get_and_watch_data(&self.path);
            match request_creating_missing_node(&client, &self.path, &self.seed.to_be_bytes(), look).await {
                Ok((bytes, stat, watch)) => {
                    if let Ok(seen) = self.decode(&bytes, stat.version) {
                        sender.send_if_modified(|last| std::mem::replace(last, seen) != seen);
                    }
                    watch.changed().await;
                }
                Err(error) if is_session_over(&error) || is_unanswered(&error) => {
                    tracing::debug!(%error, path = self.path, "listening again");
                }
                Err(error) => {
                    tracing::warn!(%error, path = self.path, "not heard of for a while");
                    sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Sets the number and returns it; `None` if `version` is not the present one. Without a `version` it is set in any case. A
    /// missing node is first made with the seed.
    async fn write(&self, value: i32, version: Option<i32>) -> Result<Option<Versioned>, LockError> {
        let set = change_once(&self.client, &self.path, &[Error::BadVersion], |client| async move {
            let set = || client.set_data(&self.path, &value.to_be_bytes(), version);
            request_creating_missing_node(&client, &self.path, &self.seed.to_be_bytes(), set).await
        });
        Ok(set.await?.map(|stat| Versioned { value, version: stat.version }))
    }

    /// Reads the number in a node's data; [`LockError::Invalid`] if that is not 4 bytes.
    fn decode(&self, bytes: &[u8], version: i32) -> Result<Versioned, LockError> {
        match bytes.try_into() {
            Ok(bytes) => Ok(Versioned { value: i32::from_be_bytes(bytes), version }),
            Err(_) => Err(LockError::invalid(&self.path, "a shared count's node holds 4 bytes")),
        }
    }
}
