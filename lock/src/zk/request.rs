//! Requests of the recipes that do not queue: repeated where that does no harm, and never where it might.
//!
//! An answer can be lost with its connection. A question is then asked again ([`ask`]). A change is not made again
//! ([`once`]): it may have been made, another may have followed it, and a second one would undo that or be counted
//! twice.
//!
//! Next to read: `barrier.rs`.

use super::{ZkClient, engine::ANSWER, insist, node::PARENT, over, unanswered, unavailable};
use crate::LockError;
use tokio::time::{Instant, sleep_until};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, Stat};

pub(super) const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// Asks until there is an answer, also in the next session.
///
/// # Errors
///
/// [`LockError::Unavailable`] where there was no connection for too long, no answer in time, or a refusal.
///
/// # Cancel safety
///
/// As the request's.
pub(super) async fn ask<T, F>(zk: &ZkClient, request: impl Fn(Client) -> F) -> Result<T, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = Instant::now() + ANSWER;
    loop {
        let client = zk.connected(deadline).await?;
        let answer = tokio::select! {
            biased;
            answer = request(client) => answer,
            error = zk.given_up() => return Err(error),
            () = sleep_until(deadline) => return Err(unavailable("no answer")),
        };
        match answer {
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
pub(super) async fn once<T, F>(zk: &ZkClient, request: impl FnOnce(Client) -> F) -> Result<Result<T, Error>, LockError>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = Instant::now() + ANSWER;
    let client = zk.connected(deadline).await?;
    let answer = tokio::select! {
        biased;
        answer = request(client) => answer,
        error = zk.given_up() => return Err(unknown(error)),
        () = sleep_until(deadline) => return Err(unknown("no answer")),
    };
    match answer {
        Err(error) if over(&error) || unanswered(&error) => Err(unknown(error)),
        answer => Ok(answer),
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
pub(super) async fn create(client: &Client, path: &str, data: &[u8]) -> Result<Stat, Error> {
    loop {
        match client.create(path, data, &PERSISTENT).await {
            Ok((stat, _)) => return Ok(stat),
            Err(Error::NoNode) => parents(client, path).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Makes the parents of `path`: containers, which the server takes away once they are empty again.
///
/// # Errors
///
/// What the server said, or that the session is over.
pub(super) async fn parents(client: &Client, path: &str) -> Result<(), Error> {
    match path.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => insist(|| client.mkdir(parent, &PARENT)).await,
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
pub(super) async fn erase(client: &Client, path: &str) -> Result<bool, Error> {
    match insist(|| client.delete(path, None)).await {
        Ok(()) => Ok(true),
        Err(Error::NoNode) => Ok(false),
        Err(error) => Err(error),
    }
}
