//! What the recipes share:
//!
//! - [`session`]: a session, and until when it surely lasts.
//! - [`node`]: a node of our own, from its creation to its confirmed deletion.
//! - [`queue_view`]: one process's contenders in one directory, and what it knows of the others.
//! - [`queue`]: the queue of such nodes in one directory.
//! - [`hold`]: a lock's handle, its hold and its guards.
//! - [`request`]: reads and changes of the recipes that do not queue.

pub(super) mod hold;
pub(super) mod node;
pub(super) mod queue;
pub(super) mod queue_view;
pub(super) mod request;
pub(super) mod session;

use crate::{Cause, LockError, deadline};
use std::time::Duration;
use tokio::time::Instant;
use zookeeper_client::Error;

/// The server's name in errors.
pub(super) const SERVER: &str = "zookeeper";

/// The longest path, in bytes: the server closes the connection over a request of more than a MiB (`jute.maxbuffer`), and a
/// request may name several nodes.
pub(super) const MAX_PATH_LENGTH: usize = 64 * 1024;

pub(super) fn unavailable_error(reason: impl Into<Cause>) -> LockError {
    LockError::unavailable(SERVER, reason)
}

/// [`LockError::Refused`] for a missing right or a quota, for example; [`LockError::Unavailable`] for all else.
pub(super) fn to_lock_error(error: Error) -> LockError {
    match error {
        Error::NoAuth | Error::InvalidAcl | Error::NoChildrenForEphemerals | Error::QuotaExceeded => {
            LockError::Refused { server: SERVER, reason: error.into() }
        }
        error => unavailable_error(error),
    }
}

/// Turns these errors of an answer into `None`.
pub(super) fn errors_to_none<T>(errors: &[Error], answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(error) if errors.contains(&error) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Whether the answer was lost with its connection: the request may have been carried out, and the session may live on.
/// The client holds the next request until it is connected again, so repeating does not spin.
pub(super) fn is_unanswered(error: &Error) -> bool {
    matches!(error, Error::ConnectionLoss | Error::SessionMoved | Error::Custom(_))
}

/// Whether the error says that the session is over for good: expired, closed or not allowed to log in.
pub(super) fn is_session_over(error: &Error) -> bool {
    matches!(error, Error::SessionExpired | Error::ClientClosed | Error::AuthFailed)
}

/// Repeats a request that may run twice, until it is answered or the session is over.
///
/// # Errors
///
/// What the server said, or that the session is over.
///
/// # Cancel safety
///
/// The request may have been carried out.
pub(super) async fn repeat_until_answered<T, F>(request: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match request().await {
            Err(error) if is_unanswered(&error) => {
                tracing::debug!(%error, "asking zookeeper again")
            }
            answered => return answered,
        }
    }
}

/// Fails if ZooKeeper would not accept the path, below the chroot.
///
/// # Errors
///
/// [`LockError::Invalid`].
pub(super) fn check_path(path: &str) -> Result<(), LockError> {
    if path.len() > MAX_PATH_LENGTH {
        let beginning: String = path.chars().take(100).collect();
        return Err(LockError::invalid(beginning, "a path has at most 64 KiB"));
    }
    let mut parts = path.split('/');
    let sound = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(is_allowed_in_path);
    if parts.next() == Some("") && path.len() > 1 && parts.all(sound) {
        return Ok(());
    }
    let rule = "a path begins with /, has no part that is empty, . or .., and no control or private character or emoji";
    Err(LockError::invalid(path, rule))
}

/// Whether ZooKeeper accepts it in a path: its `PathUtils` refuses what Java writes as two characters.
fn is_allowed_in_path(character: char) -> bool {
    !matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// How long a caller waits, and when that ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) requested: Duration,
    pub(super) end: Instant,
}

impl Wait {
    pub(super) fn new(requested: Duration) -> Self {
        Self { requested, end: deadline(requested) }
    }

    pub(super) fn taken_error(self, name: &str) -> LockError {
        LockError::taken(name, self.requested)
    }

    pub(super) fn timeout_error(self, name: &str) -> LockError {
        LockError::timeout(name, self.requested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_sound_parts() {
        for path in ["/a", "/curator/lock", "/a b", "/.a", "/a..b", "/锁", "/\u{a0}\u{ffef}"] {
            assert!(check_path(path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/",
            "a",
            "a/b",
            "/a/",
            "//a",
            "/a//b",
            "/.",
            "/a/..",
            "/a/../b",
            "/a\0",
            "/\u{1f}",
            "/\u{7f}",
            "/\u{9f}",
            "/\u{e000}",
            "/\u{f8ff}",
            &format!("/{}", "a".repeat(MAX_PATH_LENGTH)),
            "/\u{fff0}",
            "/🔒",
        ] {
            assert!(matches!(check_path(path), Err(LockError::Invalid { .. })), "{path}");
        }
    }
}
