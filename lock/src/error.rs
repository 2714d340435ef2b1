//! Errors of a lock. "Taken", "lost" and "the server did not answer" are three different things.

use std::{error::Error, fmt, ops::Deref, sync::Arc, time::Duration};

/// Why a call of this crate failed: others had the lock, a wait timed out, the hold was lost, the server was unavailable or
/// refused, or an argument was invalid.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// It was not acquired within the wait, because others had it: the lock, the permits, or the admissions of a rate
    /// limiter. Nothing is left behind.
    #[error("lock {name} was not acquired within {} ms", waited.as_millis())]
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
    #[error("lock {name} was lost before it was released")]
    Lost {
        /// The lock's name.
        name: String,
    },
    /// The server is down, did not answer, or cannot do it for a while: it became a replica (`READONLY`), cannot write
    /// (`MISCONF`, `NOREPLICAS`, `OOM`), or is loading its data. What it may have done is undone in the background,
    /// unless the method says otherwise. Trying again may help.
    #[error("{server} is not available: {reason}")]
    Unavailable {
        /// `redis`, `zookeeper` or `mysql`.
        server: &'static str,
        /// The client's error.
        #[source]
        reason: Cause,
    },
    /// The server answered with an error: the key has another type (`WRONGTYPE`), the user lacks a permission
    /// (`NOPERM`), its password is wrong. Trying again does not help until somebody changes that.
    #[error("{server} refused: {reason}")]
    Refused {
        /// `redis`, `zookeeper` or `mysql`.
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
