//! Requests of the recipes that do not queue: repeated if that is harmless, and never if not.
//!
//! If an answer is lost with its connection, a read is repeated ([`repeat_request`]). A change is not ([`change_once`]): it may
//! have been made, another may have followed it, and a second one would undo that or be counted twice. The caller learns that
//! the outcome is unknown, and must not repeat it blindly.
//!
//! Next to read: `../client.rs`.

use super::{
    Wait, check_path, errors_to_none, is_session_over, is_unanswered, session::Session, to_lock_error, unavailable_error,
};
use crate::{LockError, zk::ZkClient};
use std::{sync::Arc, time::Duration};
use zookeeper_client::{CreateMode, Error, Stat};

/// Sends a request that may run twice, a read above all, and repeats it until it is answered, also in the next session, for
/// [`ZkOptions::timeout`](crate::zk::ZkOptions::timeout) altogether.
///
/// # Errors
///
/// [`LockError::Unavailable`] if there was no connection for too long, no answer in time, or another error of the server;
/// [`LockError::Refused`] for a missing right or a quota; [`LockError::Invalid`] for a path that breaks a rule.
///
/// # Cancel safety
///
/// As the request's.
pub(in crate::zk) async fn repeat_request<T, F>(
    zk: &ZkClient,
    path: &str,
    request: impl Fn(Arc<Session>) -> F,
) -> Result<T, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    check_path(path)?;
    let wait = Wait::new(Duration::ZERO);
    loop {
        let session = zk.live_session(wait.end + zk.timeout()).await?;
        match zk.while_alive(wait, request(session)).await? {
            Err(error) if is_session_over(&error) || is_unanswered(&error) => {
                tracing::debug!(%error, "asking zookeeper again")
            }
            answer => return answer.map_err(to_lock_error),
        }
    }
}

/// Ensures that later reads are not older than this call: our server may lag behind the server on which another client made
/// a change.
///
/// # Errors
///
/// As [`repeat_request`].
///
/// # Cancel safety
///
/// Safe.
pub(in crate::zk) async fn sync_server(zk: &ZkClient, path: &str) -> Result<(), LockError> {
    repeat_request(zk, path, |session| async move { session.sync(path).await }).await
}

/// Requests a change, once; `None` if the server refused it with one of the errors in `refusals`.
///
/// # Errors
///
/// [`LockError::Unavailable`] if there is no connection; and if there is no answer: the outcome is then unknown. Any other
/// refusal has changed nothing. [`LockError::Invalid`] for a path that breaks a rule.
///
/// # Cancel safety
///
/// The change may be made or not.
pub(in crate::zk) async fn change_once<T, F>(
    zk: &ZkClient,
    path: &str,
    refusals: &[Error],
    request: impl FnOnce(Arc<Session>) -> F,
) -> Result<Option<T>, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    check_path(path)?;
    let wait = Wait::new(Duration::ZERO);
    let session = zk.live_session(wait.end + zk.timeout()).await?;
    match zk.while_alive(wait, request(session)).await {
        Err(error) => Err(unknown_outcome_error(error)),
        Ok(Err(error)) if is_session_over(&error) || is_unanswered(&error) => Err(unknown_outcome_error(error)),
        Ok(answer) => errors_to_none(refusals, answer).map_err(to_lock_error),
    }
}

/// The error of a change that may have been made.
fn unknown_outcome_error(reason: impl ToString) -> LockError {
    unavailable_error(format!("{}; whether the change was made is not known", reason.to_string()))
}

/// Creates a persistent node, and missing parents.
///
/// # Errors
///
/// [`Error::NodeExists`], or another error. Without an answer nothing is repeated.
pub(in crate::zk) async fn create_persistent_node(session: &Session, path: &str, data: &[u8]) -> Result<Stat, Error> {
    loop {
        match session.create(path, data, &session.options(CreateMode::Persistent)).await {
            Ok((stat, _)) => return Ok(stat),
            Err(Error::NoNode) => {
                let (parent, _) = path.rsplit_once('/').ok_or(Error::NoNode)?;
                session.make_directory(parent).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sends a request to a persistent node, which is created with `data` if it is missing.
///
/// # Errors
///
/// Those of the request and of [`create_persistent_node`].
pub(in crate::zk) async fn request_creating_missing_node<T, F>(
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
        match create_persistent_node(session, path, data).await {
            Ok(_) | Err(Error::NodeExists) => {}
            Err(error) => return Err(error),
        }
    }
}
