//! Locks of several kinds in one place.
//!
//! [`Lock`] returns a future of a type of its own and so is no type that a `Box` can hold. [`DynLock`] returns a boxed one;
//! every lock is a `DynLock`, and a `Box<dyn DynLock>` is a [`Lock`].

use crate::{Guard, Lock, LockError};
use futures::future::BoxFuture;
use std::time::Duration;

/// Any [`Lock`], as `Box<dyn DynLock>` ([`Lock::boxed`]).
///
/// ```no_run
/// # #[cfg(all(feature = "redis", feature = "zookeeper"))]
/// # async fn example(redis: oversell_lock::redis::RedisClient, zk: oversell_lock::zk::ZkClient)
/// # -> Result<(), oversell_lock::LockError> {
/// use oversell_lock::{Lock, MultiLock};
/// use std::time::Duration;
///
/// let both = MultiLock::new(vec![redis.fenced_lock("stock").boxed(), zk.lock("/stock").boxed()]);
/// let guard = both.acquire(Duration::from_secs(5)).await?;
/// for (lock, fence) in guard.fences() {
///     println!("{lock}: show {fence:?} with every write");
/// }
/// guard.release().await
/// # }
/// ```
pub trait DynLock: Send + Sync {
    /// [`Lock::name`].
    fn dyn_name(&self) -> &str;

    /// [`Lock::acquire`], boxed.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    fn dyn_acquire(&self, wait: Duration) -> BoxFuture<'_, Result<Guard, LockError>>;
}

impl<L: Lock> DynLock for L {
    fn dyn_name(&self) -> &str {
        self.name()
    }

    fn dyn_acquire(&self, wait: Duration) -> BoxFuture<'_, Result<Guard, LockError>> {
        Box::pin(self.acquire(wait))
    }
}

impl Lock for Box<dyn DynLock> {
    fn name(&self) -> &str {
        (**self).dyn_name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        (**self).dyn_acquire(wait).await
    }
}
