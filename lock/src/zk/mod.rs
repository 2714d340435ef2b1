//! Locks in ZooKeeper, with the node names that Curator has made common: a Java process and ours exclude each other.
//!
//! In reading order: [`ZkClient`] is one per process and keeps a session; `session.rs` is how; [`ZkLock`] is a
//! contender's handle; `engine.rs` is the queue that it stands in, `hold.rs` what it holds when its turn has come,
//! `node.rs` its node there. [`ZkRwLock`] and [`ZkSemaphore`] are other rules over the same queue. The recipes that do not
//! queue follow `request.rs`: [`ZkBarrier`], [`ZkDoubleBarrier`], [`ZkSharedCount`], [`ZkAtomicLong`].
//!
//! # One queue
//!
//! Each contender is a node of its own in the lock's directory, also where many are of one process: so `ls` shows who
//! waits, and first come is first served over all processes. What it costs: who queues, and who is next, lists all of
//! them.

mod atomic_long;
mod barrier;
mod client;
mod double_barrier;
mod engine;
mod hold;
mod lock;
mod member;
mod node;
mod read_write;
mod request;
mod revocation;
mod semaphore;
mod session;
mod shared_count;

pub use atomic_long::{Outcome, ZkAtomicLong};
pub use barrier::ZkBarrier;
pub use client::ZkClient;
pub use double_barrier::ZkDoubleBarrier;
pub use lock::ZkLock;
pub use read_write::{ZkReadLock, ZkRwLock, ZkWriteLock};
pub use revocation::Revocation;
pub use semaphore::{ZkSemaphore, ZkSemaphoreMutex};
pub use session::ZkOptions;
pub use shared_count::{Versioned, ZkSharedCount};

use crate::LockError;
use zookeeper_client::Error;

const SERVER: &str = "zookeeper";

fn unavailable(reason: impl ToString) -> LockError {
    LockError::Unavailable { server: SERVER, reason: reason.to_string() }
}

/// Whether the answer was lost with its connection: the request may have been carried out, and the session may
/// live on. The client holds what is asked next until it is connected again, so repeating does not spin.
fn unanswered(error: &Error) -> bool {
    matches!(error, Error::ConnectionLoss | Error::SessionMoved | Error::Custom(_))
}

/// Whether the session is over, and its nodes with it.
fn over(error: &Error) -> bool {
    matches!(error, Error::SessionExpired | Error::ClientClosed | Error::AuthFailed)
}

/// Repeats a request that does no harm when it is carried out twice, until it is answered or the session is over.
///
/// # Errors
///
/// What the server said, or that the session is over.
///
/// # Cancel safety
///
/// As the request's: it may have been carried out.
pub async fn insist<T, F>(request: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match request().await {
            Err(error) if unanswered(&error) => tracing::debug!(%error, "asking zookeeper again"),
            answered => return answered,
        }
    }
}
