//! Requests of the recipes that do not queue: repeated where that does no harm, and never where it might.
//!
//! An answer can be lost with its connection. A question is then asked again ([`ask`]). A change is not made again
//! ([`once`]): it may have been made, another may have followed it, and a second one would undo that or be counted
//! twice.
//!
//! What it survives: lost answers, and sessions that end between the questions. **What breaks it**: a caller that makes a
//! change again of which it was told that it is not known.
//!
//! Next to read: `../barrier.rs`.

use super::{ANSWER, answered_by, insist, over, session::Session, unanswered, unavailable, valid};
use crate::{LockError, zk::ZkClient};
use std::sync::Arc;
use tokio::time::Instant;
use zookeeper_client::{CreateMode, Error, Stat};

/// Asks until there is an answer, also in the next session.
///
/// # Errors
///
/// [`LockError::Unavailable`] where there was no connection for too long, no answer in time, or a refusal.
///
/// # Cancel safety
///
/// As the request's.
pub(in crate::zk) async fn ask<T, F>(
    zk: &ZkClient,
    path: &str,
    request: impl Fn(Arc<Session>) -> F,
) -> Result<T, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    valid(path)?;
    let end = Instant::now() + ANSWER;
    loop {
        let session = zk.connected(end).await?;
        match zk.while_up(answered_by(end, request(session))).await?? {
            Err(error) if over(&error) || unanswered(&error) => tracing::debug!(%error, "asking zookeeper again"),
            answer => return answer.map_err(unavailable),
        }
    }
}

/// Asks for a change, once. What the server refuses it has not done; that is the inner error.
///
/// # Errors
///
/// [`LockError::Unavailable`] where there is no connection, and where there is no answer: whether the change was
/// made, or will be, is then not known.
///
/// # Cancel safety
///
/// Dropping it leaves that unknown.
pub(in crate::zk) async fn once<T, F>(
    zk: &ZkClient,
    path: &str,
    request: impl FnOnce(Arc<Session>) -> F,
) -> Result<Result<T, Error>, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    valid(path)?;
    let end = Instant::now() + ANSWER;
    let session = zk.connected(end).await?;
    match zk.while_up(answered_by(end, request(session))).await.flatten() {
        Err(error) => Err(unknown(error)),
        Ok(Err(error)) if over(&error) || unanswered(&error) => Err(unknown(error)),
        Ok(answer) => Ok(answer),
    }
}

fn unknown(reason: impl ToString) -> LockError {
    unavailable(format!("{}; whether the change was made is not known", reason.to_string()))
}

/// Makes a persistent node, and its parents where they are missing.
///
/// # Errors
///
/// [`Error::NodeExists`], or whatever else the server or the client said. Without an answer nothing is repeated.
pub(in crate::zk) async fn create(session: &Session, path: &str, data: &[u8]) -> Result<Stat, Error> {
    loop {
        match session.create(path, data, &session.options(CreateMode::Persistent)).await {
            Ok((stat, _)) => return Ok(stat),
            Err(Error::NoNode) => parents(session, path).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Makes the parents of `path`.
async fn parents(session: &Session, path: &str) -> Result<(), Error> {
    match path.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => session.directory(parent).await,
        // Right below the chroot, which is not there.
        _ => Err(Error::NoNode),
    }
}

/// Deletes a node; `false` where it was gone already.
///
/// # Errors
///
/// What the server said, or that the session is over. Without an answer it is repeated: only for nodes that nobody
/// makes again.
pub(in crate::zk) async fn erase(session: &Session, path: &str) -> Result<bool, Error> {
    match insist(|| session.delete(path, None)).await {
        Ok(()) => Ok(true),
        Err(Error::NoNode) => Ok(false),
        Err(error) => Err(error),
    }
}
