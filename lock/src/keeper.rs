//! The keeper of a hold: one task per guard, which renews, watches and releases.
//!
//! 1. It waits for the holder's release, for the end until which the hold is sure ([`SureUntil`]), or for the news that
//!    the hold is gone.
//! 2. [`Guard::release`](crate::Guard::release) sends a reply channel to `release_request` and returns what
//!    [`Release::done`] puts into it; the lock is released here.
//! 3. The holder learns of a loss at once. A lost hold stays until its holder releases it: the holder may still be at work.
//! 4. Because one task renews, watches and releases, no renewal outlives its lock, and a guard that is dropped at any
//!    `await` is released.
//!
//! Next to read: `redis/hold.rs`, whose `LeaseShare` is the [`Share`] of a Redis lock; then `lease.rs`.

use crate::{
    LockError,
    events::{LockEvent, Observer},
    sure_until::SureUntil,
};
use std::{future::Future, sync::Arc};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The end of a [`Guard`](crate::Guard) that the lock's task has: it receives the request to release, and tells the holder of a
/// loss. It is for the locks of this crate and for those that others write.
///
/// ```
/// use oversell_lock::{Guard, Lock, LockError};
/// use std::{sync::Arc, time::Duration};
/// use tokio::{sync::Mutex, time::timeout};
///
/// /// A lock of this process, which passes for any other.
/// struct Local(Arc<Mutex<()>>);
///
/// impl Lock for Local {
///     fn name(&self) -> &str {
///         "local"
///     }
///
///     async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
///         let taken = |_| LockError::Taken { name: self.name().into(), waited: wait };
///         let held = timeout(wait, Arc::clone(&self.0).lock_owned()).await.map_err(taken)?;
///         let (guard, mut keeper) = Guard::new(self.name(), None);
///         tokio::spawn(async move {
///             let release = keeper.release_requested().await;
///             drop(held);
///             release.done(Ok(()));
///         });
///         Ok(guard)
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), LockError> {
/// # let lock = Local(Arc::default());
/// # let guard = lock.try_acquire().await?;
/// # assert!(lock.try_acquire().await.is_err());
/// # guard.release().await?;
/// # lock.acquire(Duration::from_secs(1)).await?.release().await
/// # }
/// ```
#[derive(Debug)]
pub struct Keeper {
    /// The lock's name, for errors and events.
    pub(crate) name: Arc<str>,
    pub(crate) lost: CancellationToken,
    pub(crate) release_request: oneshot::Receiver<oneshot::Sender<Result<(), LockError>>>,
}

/// A holder's request to release, with the channel for the result; without one if the guard was dropped. Dropping it without
/// [`done`](Self::done) answers [`LockError::Lost`].
#[derive(Debug)]
pub struct Release(Option<oneshot::Sender<Result<(), LockError>>>);

/// One guard's share of a hold, which the guard's keeper owns; each way to hold a lock has a type that implements it.
/// Dropping it releases it in the background, except permits without a lease, which then stay taken.
pub(crate) trait Share: Send + 'static {
    /// The observer of the client that acquired the lock; none by default.
    fn observer(&self) -> &Observer {
        Observer::NONE
    }

    /// The kind of lock in its events: the name of its type.
    fn kind(&self) -> &'static str;

    /// Renews the lease, if there is one, and moves `sure_until` each time; completes when the hold is lost.
    fn renew_until_lost(&self, sure_until: &SureUntil) -> impl Future<Output = ()> + Send;

    /// Called once, after the holder was told that the hold is lost. A share that lets the next waiter of this process try
    /// does so here.
    fn on_loss(&mut self) {}

    /// Ends the share: the last one of a hold releases it and waits for the answer. A `lost` share returns `Ok`, and its hold
    /// is released in the background; but the parts of a [`MultiLock`](crate::MultiLock) are always released here.
    fn finish(self, lost: bool) -> impl Future<Output = Result<(), LockError>> + Send;
}

/// Runs one guard's keeper until its holder releases it; tells the holder and the observer of a loss, ends the share, and
/// answers the release: with [`LockError::Lost`] after a loss, also if `sure_until` is over only when the release comes.
pub(crate) async fn run_keeper(mut share: impl Share, sure_until: SureUntil, mut keeper: Keeper) {
    let (observer, kind, name) = (share.observer().clone(), share.kind(), Arc::clone(&keeper.name));
    let began = observer.now_if_observed();
    let held = || began.map(|began| began.elapsed()).unwrap_or_default();
    let request = tokio::select! {
        biased;
        request = keeper.release_requested() => Some(request),
        () = sure_until.wait_until_over() => None,
        () = share.renew_until_lost(&sure_until) => None,
    };
    let (lost, request) = match request {
        Some(request) if !sure_until.is_over() => (false, request),
        request => {
            tracing::warn!(kind, lock = &*name, "lost while it was held");
            sure_until.end_now();
            keeper.tell_lost();
            observer.observe(LockEvent::Lost { kind, name: &name, held: held() });
            share.on_loss();
            match request {
                Some(request) => (true, request),
                None => (true, keeper.release_requested().await),
            }
        }
    };
    let held = held();
    let finished = share.finish(lost).await;
    match &finished {
        Ok(()) if lost => {}
        Ok(()) => observer.observe(LockEvent::Released { kind, name: &name, held }),
        Err(error) => observer.observe(LockEvent::NotReleased { kind, name: &name, error }),
    }
    request.done(match finished {
        Ok(()) if lost => Err(LockError::lost(&*name)),
        finished => finished,
    });
}

impl Keeper {
    /// Completes when the holder releases or drops its guard.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is consumed before it completes. After that it panics if it is called again.
    pub async fn release_requested(&mut self) -> Release {
        Release((&mut self.release_request).await.ok())
    }

    /// Tells the holder that the lock is lost. The keeper must still answer the release.
    pub fn tell_lost(&self) {
        self.lost.cancel();
    }
}

/// A keeper that ends, by a panic or with its runtime, keeps nothing any more, so its holder is told.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.lost.cancel();
    }
}

impl Release {
    /// Answers the holder, if it still listens; for a dropped guard it logs an error instead.
    pub fn done(self, result: Result<(), LockError>) {
        if let Some(reply) = self.0 {
            reply.send(result).ok();
        } else if let Err(error) = result {
            tracing::debug!(%error, "a dropped guard was not released cleanly");
        }
    }
}
