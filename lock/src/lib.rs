//! Distributed locks for tokio.
//!
//! A [`Lock`] is taken with [`Lock::acquire`], which waits at most as long as it is told, and gives a
//! [`Guard`]. The guard says when the lock was lost ([`Guard::lost`]) and gives it back
//! ([`Guard::release`]). Every lock of this crate passes one contract suite (`lock/tests`).
//!
//! # Choosing a lock
//!
//! | lock | waits by | a dead holder blocks the others | what breaks it |
//! |---|---|---|---|
//! | [`redis::RedisLock`] | pub/sub and a timed re-check | until its lease ends | a holder that is paused beyond its lease; a primary that fails before its replica has the key |
//! | [`zk::ZkLock`] | a watch on its predecessor | until its session ends | a holder that is paused beyond its session |
//! | [`mysql::TableLock`] | polling | for ever | a holder that dies: somebody must delete its row |
//!
//! A lease cannot stop a holder that is paused: only the resource can, by refusing an old [`Fence`].

mod error;
mod guard;
mod multi;
mod owner;
#[cfg(any(feature = "mysql", feature = "zookeeper"))]
mod places;

pub mod local;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "zookeeper")]
pub mod zk;

pub use error::LockError;
pub use guard::{Fence, Guard, Keeper, Release};
pub use multi::MultiLock;
pub use owner::{Owner, Process};

use std::{future::Future, time::Duration};

/// The example of the README is compiled.
#[cfg(all(doctest, feature = "redis"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// A lock that any number of processes may contend for.
///
/// A value is one contender's handle: it is cheap, and each has an [`Owner`] of its own.
pub trait Lock: Send + Sync {
    /// The name that every contender uses, in the server's own terms (a key, a path, a row).
    fn name(&self) -> &str;

    /// Takes the lock, waiting for it at most `wait`.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] where another held it for all of `wait`, [`LockError::Unavailable`] where the
    /// server is down or did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: no key, node, row, queue entry or connection. What an
    /// unanswered command may have taken is given back in the background.
    fn acquire(&self, wait: Duration) -> impl Future<Output = Result<Guard, LockError>> + Send;

    /// Takes the lock if it is free now: [`acquire`](Lock::acquire) without a wait.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Lock::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Lock::acquire).
    fn try_acquire(&self) -> impl Future<Output = Result<Guard, LockError>> + Send {
        self.acquire(Duration::ZERO)
    }
}
