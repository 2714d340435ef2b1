//! What can go wrong with a lock. "Taken", "lost" and "the server did not answer" are three different things.

use std::time::Duration;

/// Why a lock was not had, or was not given back.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LockError {
    /// Another owner held it for all of the wait. Nothing is left behind.
    #[error("lock {name} not had within {} ms", waited.as_millis())]
    Taken {
        /// The lock's name.
        name: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The holder no longer had it when it came to give it back: its lease or session had ended.
    #[error("lock {name} was lost before it was released")]
    Lost {
        /// The lock's name.
        name: String,
    },
    /// The server is down or did not answer. What it may have done is undone in the background, unless the
    /// method says otherwise.
    #[error("{server} is not available: {reason}")]
    Unavailable {
        /// `redis`, `zookeeper` or `mysql`.
        server: &'static str,
        /// What the client said.
        reason: String,
    },
    /// The name cannot be one of this lock's names.
    #[error("lock {name}: {rule}")]
    Invalid {
        /// The name.
        name: String,
        /// What it breaks, with its bounds.
        rule: &'static str,
    },
}
