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

use super::{Wait, failed, over, session::Session, unanswered, unavailable, unless, valid};
use crate::{LockError, zk::ZkClient};
use std::{sync::Arc, time::Duration};
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
    let wait = Wait::new(Duration::ZERO);
    loop {
        let session = zk.connected(wait.end + zk.timeout()).await?;
        match zk.answered(wait, request(session)).await? {
            Err(error) if over(&error) || unanswered(&error) => {
                tracing::debug!(%error, "asking zookeeper again")
            }
            answer => return answer.map_err(failed),
        }
    }
}

/// Makes sure that what is asked for next is not older than this call: the client's server may follow behind the one on
/// which another client has made a change.
///
/// # Errors
///
/// As [`ask`].
///
/// # Cancel safety
///
/// Safe.
pub(in crate::zk) async fn catch_up(zk: &ZkClient, path: &str) -> Result<(), LockError> {
    ask(zk, path, |session| async move { session.sync(path).await }).await
}

/// Asks for a change, once. Nothing comes back where it was not made for one of the reasons in `refusals`.
///
/// # Errors
///
/// [`LockError::Unavailable`] where there is no connection, and where there is no answer: whether the change was
/// made, or will be, is then not known. What else the server refuses it has not done.
///
/// # Cancel safety
///
/// Dropping it leaves that unknown.
pub(in crate::zk) async fn once<T, F>(
    zk: &ZkClient,
    path: &str,
    refusals: &[Error],
    request: impl FnOnce(Arc<Session>) -> F,
) -> Result<Option<T>, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    valid(path)?;
    let wait = Wait::new(Duration::ZERO);
    let session = zk.connected(wait.end + zk.timeout()).await?;
    match zk.answered(wait, request(session)).await {
        Err(error) => Err(unknown(error)),
        Ok(Err(error)) if over(&error) || unanswered(&error) => Err(unknown(error)),
        Ok(answer) => unless(refusals, answer).map_err(failed),
    }
}

fn unknown(reason: impl ToString) -> LockError {
    unavailable(format!(
        "{}; whether the change was made is not known",
        reason.to_string()
    ))
}

/// Makes a persistent node, and its parents where they are missing.
///
/// # Errors
///
/// [`Error::NodeExists`], or whatever else the server or the client said. Without an answer nothing is repeated.
pub(in crate::zk) async fn create(
    session: &Session,
    path: &str,
    data: &[u8],
) -> Result<Stat, Error> {
    loop {
        match session
            .create(path, data, &session.options(CreateMode::Persistent))
            .await
        {
            Ok((stat, _)) => return Ok(stat),
            Err(Error::NoNode) => {
                let (parent, _) = path.rsplit_once('/').ok_or(Error::NoNode)?;
                session.make_directory(parent).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Asks something of a persistent node, which is made with `data` where it is missing.
///
/// # Errors
///
/// As the request's, and those of [`create`].
pub(in crate::zk) async fn with_node<T, F>(
    session: &Session,
    path: &str,
    data: &[u8],
    request: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match request().await {
            Err(Error::NoNode) => {}
            answered => return answered,
        }
        match create(session, path, data).await {
            Ok(_) | Err(Error::NodeExists) => {}
            Err(error) => return Err(error),
        }
    }
}
