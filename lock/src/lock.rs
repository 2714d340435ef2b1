//! What every lock can do, and locks of several kinds in one place.
//!
//! [`Lock`] returns a future of its own type, so a `Box` cannot hold it. [`DynLock`] returns a boxed future; every lock
//! is a `DynLock`, and a `dyn DynLock` is a [`Lock`], as is a reference, a `Box` or an `Arc` of a lock.

use crate::{Fence, Guard, LockError, WithError};
use futures::future::BoxFuture;
use std::{future::Future, sync::Arc, time::Duration};

/// A lock that any number of processes may contend for; every kind of lock in this crate implements it.
///
/// A value is one contender's handle; it is cheap. Each acquire has an [`Owner`](crate::Owner) of its own, unless the handle was
/// given one.
///
/// ```
/// # use oversell_lock::{Lock, WithError};
/// # use std::{io, time::Duration};
/// async fn import_once(lock: &impl Lock) -> Result<(), WithError<io::Error>> {
///     lock.with(Duration::from_secs(5), |_| import()).await
/// }
/// # async fn import() -> io::Result<()> { Ok(()) }
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

    /// Takes the lock as [`acquire`](Lock::acquire) does, runs `work` while it is held, and releases it. `work` gets the hold's
    /// fencing token, if it has one, to show it with every write. At the loss of the lock the work is dropped, at whichever
    /// `await` it is; what it has already sent continues.
    ///
    /// The work must be `Send`. For any other, and to [extend](Guard::extend) a lease during the work, use the three calls that
    /// this one is made of: [`acquire`](Lock::acquire), [`Guard::run`] and [`Guard::release`].
    ///
    /// # Errors
    ///
    /// [`WithError`], whose variants say how far it came: the work was not begun, was given up, failed by itself, or is done
    /// and the lock was not released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: it ends the wait, or drops the work and releases the lock in the background.
    /// Work that panics releases it too.
    fn with<T, E, F>(
        &self,
        wait: Duration,
        work: impl FnOnce(Option<Fence>) -> F + Send,
    ) -> impl Future<Output = Result<T, WithError<E>>> + Send
    where
        T: Send,
        E: Send,
        F: Future<Output = Result<T, E>> + Send,
    {
        async move {
            let guard = self.acquire(wait).await.map_err(WithError::NotAcquired)?;
            let work = work(guard.fence());
            run_and_release(guard, work).await
        }
    }

    /// Boxes this lock, to keep it beside locks of other kinds.
    fn boxed(self) -> Box<dyn DynLock>
    where
        Self: Sized + 'static,
    {
        Box::new(self)
    }
}

/// Runs `work` while `guard` is held, and releases it.
///
/// # Cancel safety
///
/// As [`Lock::with`].
pub(crate) async fn run_and_release<T, E>(guard: Guard, work: impl Future<Output = Result<T, E>>) -> Result<T, WithError<E>> {
    let done = guard.run(work).await.map_err(WithError::Lost)?;
    let name = guard.name().to_owned();
    match (done, guard.release().await) {
        (Ok(done), Ok(())) => Ok(done),
        (Ok(_), Err(error)) => Err(WithError::NotReleased(error)),
        (Err(failed), released) => {
            if let Err(error) = released {
                tracing::warn!(%error, lock = name, "the work failed, and its lock was not released");
            }
            Err(WithError::Work(failed))
        }
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
    /// The rest of the holder's lease; `None` if it is not shown: in ZooKeeper and etcd, and in a table without leases.
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

            /// Takes the lock, runs `work` while it is held, and releases it: [`Lock::with`](crate::Lock::with), without the
            /// trait in scope.
            ///
            /// # Errors
            ///
            /// As [`Lock::with`](crate::Lock::with).
            ///
            /// # Cancel safety
            ///
            /// As [`Lock::with`](crate::Lock::with).
            pub fn with<T, E, F>(
                &self,
                wait: std::time::Duration,
                work: impl FnOnce(Option<$crate::Fence>) -> F + Send,
            ) -> impl Future<Output = Result<T, $crate::WithError<E>>> + Send
            where
                T: Send,
                E: Send,
                F: Future<Output = Result<T, E>> + Send,
            {
                $crate::Lock::with(self, wait, work)
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

    /// A free lock whose guard is lost at once, or is not released for good.
    struct Fails {
        lost: bool,
        released: Result<(), LockError>,
    }

    impl Lock for Fails {
        fn name(&self) -> &str {
            "fails"
        }

        async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
            let (guard, mut keeper) = Guard::new("fails", Some(Fence(7)));
            if self.lost {
                keeper.tell_lost();
            }
            let released = self.released.clone();
            tokio::spawn(async move { keeper.release_requested().await.done(released) });
            Ok(guard)
        }
    }

    #[tokio::test]
    async fn work_under_a_lock_says_how_far_it_came() {
        let down = || LockError::unavailable("redis", "down");
        let free = Fails { lost: false, released: Ok(()) };
        let fence = free.with(Duration::ZERO, async |fence| Ok::<_, String>(fence)).await;
        assert!(matches!(fence, Ok(Some(Fence(7)))), "{fence:?}");
        let never = Two.with(Duration::ZERO, async |_| -> Result<(), String> { panic!("it was begun") }).await;
        assert!(matches!(never, Err(WithError::NotAcquired(LockError::Taken { .. }))), "{never:?}");
        let lost = Fails { lost: true, released: Ok(()) };
        let given_up = lost.with(Duration::ZERO, async |_| Ok::<_, String>(())).await;
        assert!(matches!(given_up, Err(WithError::Lost(LockError::Lost { .. }))), "{given_up:?}");
        let stays = Fails { lost: false, released: Err(down()) };
        let done = stays.with(Duration::ZERO, async |_| Ok::<_, String>(())).await;
        assert!(matches!(done, Err(WithError::NotReleased(LockError::Unavailable { .. }))), "{done:?}");
        for lock in [free, stays] {
            let failed = lock.with(Duration::ZERO, async |_| Err::<(), _>("no paper".to_owned())).await;
            let said = failed.expect_err("it failed");
            assert!(matches!(&said, WithError::Work(error) if error == "no paper"), "{said:?}");
            assert_eq!(said.to_string(), "no paper");
        }
    }

    /// What services use for their errors: `?` takes it from each.
    #[tokio::test]
    async fn an_error_under_a_lock_becomes_any_boxed_error() {
        async fn all(lock: Fails) -> Result<(), Box<dyn std::error::Error>> {
            lock.with(Duration::ZERO, async |_| Ok::<_, std::io::Error>(())).await?;
            lock.with(Duration::ZERO, async |_| anyhow::Ok(())).await?;
            lock.with(Duration::ZERO, async |_| Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())).await?;
            Ok(())
        }
        assert!(all(Fails { lost: false, released: Ok(()) }).await.is_ok());
    }
}
