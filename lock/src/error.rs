//! Errors of a lock. "Taken", "lost" and "the server did not answer" are three different things.

use std::{error::Error, fmt, ops::Deref, sync::Arc, time::Duration};

/// Why a call of this crate failed: others had the lock, a wait timed out, the hold was lost, the server was unavailable or
/// refused, or an argument was invalid.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// It was not acquired within the wait, because others had it: the lock, the permits, or the admissions of a rate
    /// limiter. Nothing is left behind.
    #[error("{}", not_acquired(name, *waited))]
    Taken {
        /// The lock's name.
        name: String,
        /// The caller's wait limit; of a rate limiter, which may refuse before that, how long the caller waited.
        waited: Duration,
    },
    /// What was waited for did not happen within the wait: a latch or barrier stayed closed, or members of a double barrier
    /// were missing. Nobody had taken anything.
    #[error("the wait for {name} timed out after {} ms", waited.as_millis())]
    Timeout {
        /// The name of the latch or barrier.
        name: String,
        /// The caller's wait limit.
        waited: Duration,
    },
    /// The hold had ended, or may have ended, before its guard was released.
    #[error("{name} was lost before it was released")]
    Lost {
        /// The lock's name.
        name: String,
    },
    /// The server is down, did not answer, or cannot do it for a while: it became a replica (`READONLY`), cannot write
    /// (`MISCONF`, `NOREPLICAS`, `OOM`), or is loading its data. What it may have done is undone in the background,
    /// unless the method says otherwise. Trying again may help.
    #[error("{server} is not available: {reason}")]
    Unavailable {
        /// `redis`, `zookeeper`, `etcd` or `mysql`.
        server: &'static str,
        /// The client's error.
        #[source]
        reason: Cause,
    },
    /// The server answered with an error: the key has another type (`WRONGTYPE`), the user lacks a permission
    /// (`NOPERM`), its password is wrong. Trying again does not help until somebody changes that.
    #[error("{server} refused: {reason}")]
    Refused {
        /// `redis`, `zookeeper`, `etcd` or `mysql`.
        server: &'static str,
        /// The server's error.
        #[source]
        reason: Cause,
    },
    /// An argument breaks a rule: a name, a lease, an address, a number out of its range.
    #[error("{name}: {rule}")]
    Invalid {
        /// The name of the lock, limiter or semaphore; or the argument, by its name or value.
        name: String,
        /// The broken rule, with its bounds.
        rule: &'static str,
    },
}

impl LockError {
    pub(crate) fn taken(name: impl Into<String>, waited: Duration) -> Self {
        let name = name.into();
        Self::Taken { name, waited }
    }

    #[cfg(any(feature = "redis", feature = "zookeeper"))]
    pub(crate) fn timeout(name: impl Into<String>, waited: Duration) -> Self {
        let name = name.into();
        Self::Timeout { name, waited }
    }

    pub(crate) fn lost(name: impl Into<String>) -> Self {
        Self::Lost { name: name.into() }
    }

    pub(crate) fn unavailable(server: &'static str, reason: impl Into<Cause>) -> Self {
        let reason = reason.into();
        Self::Unavailable { server, reason }
    }

    pub(crate) fn invalid(name: impl Into<String>, rule: &'static str) -> Self {
        let name = name.into();
        Self::Invalid { name, rule }
    }
}

/// What a caller is told that has not acquired `name`, which may be a lock, permits or admissions.
fn not_acquired(name: &str, waited: Duration) -> String {
    match waited.as_millis() {
        0 => format!("{name} is taken"),
        millis => format!("{name} was not acquired within {millis} ms"),
    }
}

/// Why work under a lock failed ([`Lock::with`](crate::Lock::with)): because of the lock, before, during or after the work; or
/// because of the work itself, whose own error is `E`.
///
/// ```
/// # use oversell_lock::{Lock, LockError, WithError};
/// # use std::{io, time::Duration};
/// # async fn work() -> io::Result<u32> { Ok(7) }
/// # async fn example(lock: impl Lock) {
/// match lock.with(Duration::from_secs(5), |_| work()).await {
///     Ok(done) => println!("{done}"),
///     Err(WithError::NotAcquired(LockError::Taken { .. })) => println!("others have it"),
///     Err(WithError::Work(error)) => println!("the work itself failed: {error}"),
///     Err(lock) => println!("{lock}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum WithError<E> {
    /// The lock was not acquired: the work was not begun.
    #[error("the work was not begun: {0}")]
    NotAcquired(#[source] LockError),
    /// The lock was lost during the work, which was dropped at whichever `await` it was, or ended when another may have had
    /// the lock.
    #[error("the work was given up: {0}")]
    Lost(#[source] LockError),
    /// The work is done, and its result dropped: the release failed. After [`LockError::Lost`] another may have had the lock
    /// before the work had ended; after any other error the lock may last until its lease or session ends.
    #[error("the work is done, but its lock was not released: {0}")]
    NotReleased(#[source] LockError),
    /// The error of the work itself. The lock was released.
    #[error("{0}")]
    Work(E),
}

/// The reason of the [`LockError::Unavailable`] that calls get once their client is being closed.
#[derive(Debug, thiserror::Error)]
#[error("the client was closed")]
pub(crate) struct ClientClosed;

/// The reason of a [`LockError`]: an error of the server or of its client, or a text.
///
/// ```
/// use oversell_lock::{Cause, LockError};
/// use std::{error::Error, io};
///
/// let reason = Cause::from(io::Error::other("reset"));
/// let error = LockError::Unavailable { server: "redis", reason };
/// assert_eq!(error.to_string(), "redis is not available: reset");
/// assert!(error.source().is_some_and(|source| source.is::<io::Error>()));
/// ```
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Cause {
    fn from(error: E) -> Self {
        Self(error.into().into())
    }
}

impl Deref for Cause {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
