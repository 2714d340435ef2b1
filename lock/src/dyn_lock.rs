//! Locks of several kinds in one place.
//!
//! [`Lock`] returns a future of its own type, so a `Box` cannot hold it. [`DynLock`] returns a boxed future; every lock
//! is a `DynLock`, and a `dyn DynLock` is a [`Lock`], as is a reference, a `Box` or an `Arc` of a lock.

use crate::{Guard, Lock, LockError};
use futures::future::BoxFuture;
use std::{future::Future, sync::Arc, time::Duration};

/// A [`Lock`] whose futures are boxed, for a `Box<dyn DynLock>` ([`Lock::boxed`]); every lock is one.
///
/// ```no_run
/// # #[cfg(all(feature = "redis", feature = "zookeeper"))]
/// # async fn example(redis: oversell_lock::redis::RedisClient, zk: oversell_lock::zk::ZkClient)
/// # -> Result<(), oversell_lock::LockError> {
/// use oversell_lock::{Lock, MultiLock};
/// use std::time::Duration;
///
/// let (one, other) = (redis.fenced_lock("stock").boxed(), zk.lock("/stock").boxed());
/// let both = MultiLock::new(vec![one, other]);
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

    /// [`Lock::try_acquire`], boxed.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_acquire`].
    fn dyn_try_acquire(&self) -> BoxFuture<'_, Result<Guard, LockError>>;
}

impl<L: Lock> DynLock for L {
    fn dyn_name(&self) -> &str {
        self.name()
    }

    fn dyn_acquire(&self, wait: Duration) -> BoxFuture<'_, Result<Guard, LockError>> {
        Box::pin(self.acquire(wait))
    }

    fn dyn_try_acquire(&self) -> BoxFuture<'_, Result<Guard, LockError>> {
        Box::pin(self.try_acquire())
    }
}

impl Lock for dyn DynLock {
    fn name(&self) -> &str {
        self.dyn_name()
    }

    fn acquire(&self, wait: Duration) -> impl Future<Output = Result<Guard, LockError>> + Send {
        self.dyn_acquire(wait)
    }

    fn try_acquire(&self) -> impl Future<Output = Result<Guard, LockError>> + Send {
        self.dyn_try_acquire()
    }
}

macro_rules! lock_behind {
    ($($pointer:ty),+) => {$(
        impl<L: Lock + ?Sized> Lock for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn acquire(&self, wait: Duration) -> impl Future<Output = Result<Guard, LockError>> + Send {
                (**self).acquire(wait)
            }

            fn try_acquire(&self) -> impl Future<Output = Result<Guard, LockError>> + Send {
                (**self).try_acquire()
            }
        }
    )+};
}
lock_behind!(&L, Box<L>, Arc<L>);

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock whose `try_acquire` is its own.
    struct Two;

    impl Lock for Two {
        fn name(&self) -> &str {
            "two"
        }

        async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
            Err(LockError::taken("acquire", wait))
        }

        async fn try_acquire(&self) -> Result<Guard, LockError> {
            Err(LockError::taken("try_acquire", Duration::ZERO))
        }
    }

    async fn keeps_its_own(lock: impl Lock) {
        let (first, second) = (lock.acquire(Duration::ZERO).await, lock.try_acquire().await);
        let asked = [first, second].map(|answer| match answer {
            Err(LockError::Taken { name, .. }) => name,
            other => panic!("{other:?}"),
        });
        assert_eq!(
            (lock.name(), asked),
            ("two", ["acquire", "try_acquire"].map(Into::into))
        );
    }

    #[tokio::test]
    async fn a_lock_behind_a_pointer_is_the_same_lock() {
        keeps_its_own(&Two).await;
        keeps_its_own(Box::new(Two)).await;
        keeps_its_own(Arc::new(Two)).await;
        keeps_its_own(Two.boxed()).await;
        keeps_its_own(&*Two.boxed()).await;
        let shared: Arc<dyn DynLock> = Arc::new(Two);
        keeps_its_own(shared).await;
    }
}
