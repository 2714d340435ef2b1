//! Curator's `DistributedAtomicLong` with a `PromotedToLock`: a counter.
//!
//! 1. A node holds the number. A missing or empty node is 0.
//! 2. Read it, and set it on condition of that version. If another was faster, try again after a random pause that doubles, up
//!    to 100 ms.
//! 3. After a few tries, go on under a mutex at `<path>-lock` (give Curator this path), so that losers do not disturb each
//!    other. The version is still checked: others may be optimistic.
//!
//! Next to read: `mutex.rs`, its mutex.

use super::engine::errors_to_none;
use super::engine::request::{change_once, create_persistent_node, repeat_request, request_creating_missing_node, sync_server};
use super::{ZkClient, ZkLock};
use crate::LockError;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use zookeeper_client::Error;

/// How many tries of a change there are by default before the mutex is taken.
const OPTIMISTIC_TRIES: u32 = 3;

/// The longest random pause after the first failed try; it doubles with each further one. Another's change takes milliseconds.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(2);
/// The longest random pause after any failed try.
const MAX_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The longest wait for the mutex, and the longest time of tries under it; after either the change has not succeeded.
const MUTEX_TIMEOUT: Duration = Duration::from_secs(10);

/// A counter in ZooKeeper; see [`ZkClient::atomic_long`]. Source: Curator's `DistributedAtomicLong`.
///
/// # Survives
///
/// A process that dies at any point, also under the mutex; a lost connection before or between the requests; a server restart.
/// A change whose answer is lost is not retried: the caller learns that the result is unknown, and nothing is counted twice.
///
/// # What breaks it
///
/// - a node that is deleted and made again starts at version 0, so a change that was read before may match once more;
/// - a caller that repeats a change whose result is unknown.
///
/// # Cost
///
/// One or two requests to read; two for each try of a change, and after a few tries those of a [`ZkLock`](super::ZkLock). A
/// change waits for the disks of a majority of the servers.
///
/// # Format
///
/// Curator's `DistributedAtomicLong` with a `PromotedToLock` at `<path>-lock`: a persistent node with 8 bytes, big-endian.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let counter = zk.atomic_long("/curator/atomic");
/// counter.initialize(100).await?;
/// let added = counter.add(5).await?;
/// assert!(!added.succeeded || added.after == added.before.wrapping_add(5));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkAtomicLong {
    client: ZkClient,
    path: String,
    mutex: ZkLock,
    tries: u32,
}

/// The result of a change: whether it was made, and the number before and after it.
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let outcome = zk.atomic_long("/curator/atomic").compare_and_set(7, 8).await?;
/// println!("{} -> {}", outcome.before, outcome.after);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it was made. If not, nothing was changed.
    pub succeeded: bool,
    /// The number before it.
    pub before: i64,
    /// The number after it; the same as before if it was not made.
    pub after: i64,
    /// Whether it went on to the mutex, also if that stayed taken.
    pub promoted: bool,
}

/// The number and, if there is a node, its version.
#[derive(Clone, Copy, Default)]
struct VersionedValue {
    value: i64,
    version: Option<i32>,
}

impl ZkClient {
    /// Makes a handle on the counter at `path`, as `/curator/atomic`. Missing parents are created.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let counter = zk.atomic_long("/curator/atomic");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn atomic_long(&self, path: &str) -> ZkAtomicLong {
        let mutex = self.lock(&format!("{path}-lock"));
        ZkAtomicLong { client: self.clone(), path: path.to_owned(), mutex, tries: OPTIMISTIC_TRIES }
    }
}

impl ZkAtomicLong {
    /// Returns the path of its node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Returns the path of its mutex.
    #[must_use]
    pub fn lock_name(&self) -> &str {
        self.mutex.name()
    }

    /// Sets how often it tries before it takes the mutex; 0: it takes it at once.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let counter = zk.atomic_long("/curator/atomic").optimistic_tries(0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn optimistic_tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// Returns the number; 0 if its node is missing or empty.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let now = zk.atomic_long("/curator/atomic").get().await?;
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
    pub async fn get(&self) -> Result<i64, LockError> {
        sync_server(&self.client, &self.path).await?;
        Ok(self.read().await?.value)
    }

    /// Adds 1; as [`add`](Self::add).
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let number = zk.atomic_long("/curator/atomic").increment().await?.after;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn increment(&self) -> Result<Outcome, LockError> {
        self.add(1).await
    }

    /// Takes 1 away; as [`add`](Self::add).
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let number = zk.atomic_long("/curator/atomic").decrement().await?.after;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn decrement(&self) -> Result<Outcome, LockError> {
        self.subtract(1).await
    }

    /// Adds `operand`, wrapping around as in Java. It does not succeed, without an error, if the mutex stays taken for 10 s
    /// or others are faster for 10 s under it.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let added = zk.atomic_long("/curator/atomic").add(5).await?.succeeded;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]. If the answer was lost, it may have been added: it is counted once or not at all.
    /// [`LockError::Refused`]; [`LockError::Invalid`] if the node holds something else.
    ///
    /// # Cancel safety
    ///
    /// It may be added or not; the mutex is released in the background.
    pub async fn add(&self, operand: i64) -> Result<Outcome, LockError> {
        self.change_with_retries(move |before| before.wrapping_add(operand)).await
    }

    /// Takes `operand` away; as [`add`](Self::add).
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let number = zk.atomic_long("/curator/atomic").subtract(5).await?.after;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn subtract(&self, operand: i64) -> Result<Outcome, LockError> {
        self.change_with_retries(move |before| before.wrapping_sub(operand)).await
    }

    /// Sets the number to `value`, whatever it is, and returns what it replaced; retried as [`add`](Self::add).
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let replaced = zk.atomic_long("/curator/atomic").try_set(0).await?.before;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn try_set(&self, value: i64) -> Result<Outcome, LockError> {
        self.change_with_retries(move |_| value).await
    }

    /// Sets the number to `value` without reading it first; another's change may be lost.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// zk.atomic_long("/curator/atomic").force_set(0).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add), without the mutex.
    pub async fn force_set(&self, value: i64) -> Result<(), LockError> {
        let bytes = &value.to_be_bytes();
        let set = change_once(&self.client, &self.path, &[], |client| async move {
            request_creating_missing_node(&client, &self.path, bytes, || client.set_data(&self.path, bytes, None)).await
        });
        set.await.map(drop)
    }

    /// Sets the number to `value` if its node is missing; returns whether it did.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let first = zk.atomic_long("/curator/atomic").initialize(100).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add), without the mutex.
    pub async fn initialize(&self, value: i64) -> Result<bool, LockError> {
        self.write(VersionedValue::default(), value).await
    }

    /// Sets the number to `new` if it is `expected`. As in Curator it does not succeed if the node is missing, and is not
    /// retried: with another change at the same moment it may not succeed though the number is `expected`.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let swapped = zk.atomic_long("/curator/atomic").compare_and_set(7, 8).await?.succeeded;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add), without the mutex.
    pub async fn compare_and_set(&self, expected: i64, new: i64) -> Result<Outcome, LockError> {
        sync_server(&self.client, &self.path).await?;
        let seen = self.read().await?;
        let succeeded = seen.version.is_some() && seen.value == expected && self.write(seen, new).await?;
        Ok(Outcome::of(seen.value, new, succeeded))
    }

    /// Changes the number by `change`: optimistic tries first, and then tries under the mutex for [`MUTEX_TIMEOUT`].
    async fn change_with_retries(&self, change: impl Fn(i64) -> i64 + Send + Sync) -> Result<Outcome, LockError> {
        let mut pause = FIRST_RETRY_PAUSE;
        for _ in 0..self.tries {
            let outcome = self.attempt(&change).await?;
            if outcome.succeeded {
                return Ok(outcome);
            }
            sleep(pause.mul_f64(fastrand::f64())).await;
            pause = (pause * 2).min(MAX_RETRY_PAUSE);
        }
        let guard = match self.mutex.acquire(MUTEX_TIMEOUT).await {
            Err(LockError::Taken { .. }) => {
                let before = self.get().await?;
                return Ok(Outcome { promoted: true, ..Outcome::of(before, before, false) });
            }
            guard => guard?,
        };
        let deadline = Instant::now() + MUTEX_TIMEOUT;
        let outcome = loop {
            let outcome = self.attempt(&change).await?;
            if outcome.succeeded || Instant::now() > deadline {
                break outcome;
            }
        };
        // The result stands, whatever becomes of the mutex.
        if let Err(error) = guard.release().await {
            tracing::debug!(%error, path = self.path, "the mutex was not released cleanly");
        }
        Ok(Outcome { promoted: true, ..outcome })
    }

    /// Reads the number and writes the changed one; it does not succeed if another was faster.
    async fn attempt(&self, change: &(impl Fn(i64) -> i64 + Send + Sync)) -> Result<Outcome, LockError> {
        let seen = self.read().await?;
        let after = change(seen.value);
        let succeeded = self.write(seen, after).await?;
        Ok(Outcome::of(seen.value, after, succeeded))
    }

    /// Reads the number with its version, without a sync: our server may lag behind.
    async fn read(&self) -> Result<VersionedValue, LockError> {
        let found = repeat_request(&self.client, &self.path, |client| async move {
            errors_to_none(&[Error::NoNode], client.get_data(&self.path).await)
        });
        let Some((bytes, stat)) = found.await? else {
            return Ok(VersionedValue::default());
        };
        let value = match bytes.as_slice().try_into() {
            Ok(bytes) => i64::from_be_bytes(bytes),
            Err(_) if bytes.is_empty() => 0,
            Err(_) => {
                let rule = "an atomic long's node holds 8 bytes";
                return Err(LockError::invalid(&self.path, rule));
            }
        };
        Ok(VersionedValue { value, version: Some(stat.version) })
    }

    /// Sets the number to `value` if its node still has the version of `seen`, or makes the node if `seen` has none; `false` if
    /// another was faster.
    async fn write(&self, seen: VersionedValue, value: i64) -> Result<bool, LockError> {
        const CONFLICT_ERRORS: &[Error] = &[Error::BadVersion, Error::NodeExists, Error::NoNode];
        let bytes = &value.to_be_bytes();
        let written = change_once(&self.client, &self.path, CONFLICT_ERRORS, |client| async move {
            match seen.version {
                Some(_) => client.set_data(&self.path, bytes, seen.version).await,
                None => create_persistent_node(&client, &self.path, bytes).await,
            }
        });
        Ok(written.await?.is_some())
    }
}

impl Outcome {
    /// The outcome of a change without the mutex; one that did not succeed left the number as it was before.
    fn of(before: i64, after: i64, succeeded: bool) -> Self {
        Self { succeeded, before, after: if succeeded { after } else { before }, promoted: false }
    }
}
