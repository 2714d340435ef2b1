//! What every lock can do, and locks of several kinds in one place.
//!
//! [`Lock`] returns a future of its own type, so a `Box` cannot hold it. [`DynLock`] returns a boxed future; every lock
//! is a `DynLock`, and a `dyn DynLock` is a [`Lock`], as is a reference, a `Box` or an `Arc` of a lock.

use crate::{Guard, LockError};
use futures::future::BoxFuture;
use std::{future::Future, sync::Arc, time::Duration};

/// A lock that any number of processes may contend for; every kind of lock in this crate implements it.
///
/// A value is one contender's handle; it is cheap. Each acquire has an [`Owner`](crate::Owner) of its own, unless the handle was
/// given one.
///
/// ```
/// # use oversell_lock::{Lock, LockError};
/// # use std::time::Duration;
/// async fn with_lock<T>(
///     lock: &impl Lock,
///     work: impl Future<Output = T>,
/// ) -> Result<T, LockError> {
///     let guard = lock.acquire(Duration::from_secs(5)).await?;
///     let done = guard.run(work).await?;
///     guard.release().await?;
///     Ok(done)
/// }
/// ```
pub trait Lock: Send + Sync {
    /// The name that every contender uses, in the server's terms: a key, a path, a row.
    fn name(&self) -> &str;

    /// Takes the lock, waiting for it at most `wait`. A request that is under way by then is awaited, within the client's
    /// time limit, so the call may last longer.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] if another held it for all of `wait`; [`LockError::Unavailable`] if the server is down or did not
    /// answer, or the client is closed; [`LockError::Refused`] if the server answered with an error; [`LockError::Invalid`] if a
    /// name or a lease breaks a rule, or an owner that reads asks to write. In ZooKeeper [`LockError::Lost`] if the owner has a
    /// hold that is lost: release that first. Elsewhere the owner then waits for the lock as others do.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: no key, node, row, queue entry or connection. What an unanswered
    /// command may have taken is released in the background. A future that is kept but not polled, in a `select!` arm
    /// for example, may have its turn, and then blocks the waiters behind it in this process.
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

    /// Boxes this lock, to keep it beside locks of other kinds.
    fn boxed(self) -> Box<dyn DynLock>
    where
        Self: Sized + 'static,
    {
        Box::new(self)
    }
}

/// The holder of a lock, as its server showed it a moment ago.
///
/// ```
/// use oversell_lock::Holder;
/// use std::time::Duration;
///
/// let holder = Holder { id: "8100-…:7".into(), remaining: Some(Duration::from_secs(20)) };
/// println!("{} has it for {:?}", holder.id, holder.remaining);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The server's name for the holder: a field of Redisson's hash, a node's name and its data, a row's owner.
    pub id: String,
    /// The rest of the holder's lease; `None` if it has none of its own: in ZooKeeper, and in a table without leases.
    pub remaining: Option<Duration>,
}

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

/// [`Lock`]'s methods as a lock's own, so that a caller who has one kind of lock needs no trait in scope.
macro_rules! inherent {
    ($($lock:ident $(<$part:ident>)?),+) => {$(
        impl $(<$part: $crate::Lock>)? $lock $(<$part>)? {
            /// Returns the lock's name: [`Lock::name`](crate::Lock::name), without the trait in scope.
            #[must_use]
            pub fn name(&self) -> &str {
                $crate::Lock::name(self)
            }

            /// Takes the lock, waiting for it at most `wait`: [`Lock::acquire`](crate::Lock::acquire), without the trait in
            /// scope.
            ///
            /// # Errors
            ///
            /// As [`Lock::acquire`](crate::Lock::acquire).
            ///
            /// # Cancel safety
            ///
            /// As [`Lock::acquire`](crate::Lock::acquire).
            pub fn acquire(
                &self,
                wait: std::time::Duration,
            ) -> impl Future<Output = Result<$crate::Guard, $crate::LockError>> + Send {
                $crate::Lock::acquire(self, wait)
            }

            /// Takes the lock if it is free now: [`Lock::try_acquire`](crate::Lock::try_acquire), without the trait in scope.
            ///
            /// # Errors
            ///
            /// As [`Lock::acquire`](crate::Lock::acquire).
            ///
            /// # Cancel safety
            ///
            /// As [`Lock::acquire`](crate::Lock::acquire).
            pub fn try_acquire(
                &self,
            ) -> impl Future<Output = Result<$crate::Guard, $crate::LockError>> + Send {
                $crate::Lock::try_acquire(self)
            }
        }
    )+};
}
pub(crate) use inherent;

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
        assert_eq!((lock.name(), asked), ("two", ["acquire", "try_acquire"].map(Into::into)));
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
