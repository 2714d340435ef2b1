//! The guard of every lock: the holder's end of a channel to the task that keeps the lock.
//!
//! Next to read: `keeper.rs`, the other end.

use crate::{
    Keeper, LockError, MAX_DURATION,
    sure_until::{SureUntil, sure_part},
};
use futures::future::BoxFuture;
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Weak},
    task::Poll,
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

/// A fencing token: a number that grows with each hold, so that the resource can refuse an older one.
///
/// A hold whose acquire began after another was acquired has a higher token than that one, and so has a hold that
/// excludes an earlier one. The guards of one owner share the token of their hold, even a guard that is
/// made after a reader with a higher token has come to hold the lock too.
///
/// ```
/// use oversell_lock::Fence;
///
/// assert!(Fence(8) > Fence(7), "the later holder has the higher one");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A held lock, until the guard is released or dropped.
///
/// [`release`](Guard::release) is the normal way to release it, and reports whether that worked. Dropping the guard
/// does the same in the background, without a report.
///
/// ```no_run
/// # use oversell_lock::{Lock, LockError};
/// # use std::time::Duration;
/// # async fn example(lock: impl Lock) -> Result<(), LockError> {
/// let guard = lock.acquire(Duration::from_secs(5)).await?;
/// guard.run(async { /* the work, which ends where the lock is lost */ }).await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct Guard {
    name: Arc<str>,
    fences: Vec<(Arc<str>, Fence)>,
    lost: CancellationToken,
    /// The expiry of its hold, or those of its parts.
    expiries: Vec<Expiry>,
    keeper: oneshot::Sender<oneshot::Sender<Result<(), LockError>>>,
}

/// Until when one hold surely lasts, and, if it has a lease, the hold itself for [`Guard::extend`].
#[derive(Clone)]
struct Expiry {
    sure_until: SureUntil,
    extendable: Option<Weak<dyn ExtendableLease>>,
}

/// A hold whose lease [`Guard::extend`] extends: one in Redis, or a row of a table with a lease.
pub(crate) trait ExtendableLease: Send + Sync {
    /// Extends the lease to at least this, from now; `false` if the hold is gone, and all its guards are then lost.
    fn extend(self: Arc<Self>, lease: Duration) -> BoxFuture<'static, Result<bool, LockError>>;
}

impl Guard {
    /// Makes a guard, and the keeper for the task behind it. The guard is lost once the keeper says so or is dropped.
    pub fn new(name: impl Into<Arc<str>>, fence: Option<Fence>) -> (Self, Keeper) {
        let (sender, release_request) = oneshot::channel();
        let (name, lost) = (name.into(), CancellationToken::new());
        let fences = fence.map(|fence| (Arc::clone(&name), fence)).into_iter().collect();
        let guard = Self { name: Arc::clone(&name), fences, lost: lost.clone(), expiries: Vec::new(), keeper: sender };
        let keeper = Keeper { name, lost, release_request };
        (guard, keeper)
    }

    /// As [`new`](Self::new), but the guard also counts as lost once `sure_until` is over, before its keeper says so.
    #[cfg(any(test, feature = "etcd", feature = "mysql", feature = "redis", feature = "zookeeper"))]
    pub(crate) fn with_sure_until(sure_until: SureUntil, name: impl Into<Arc<str>>, fence: Option<Fence>) -> (Self, Keeper) {
        let (guard, keeper) = Self::new(name, fence);
        let expiries = vec![Expiry { sure_until, extendable: None }];
        (Self { expiries, ..guard }, keeper)
    }

    /// Sets the hold whose lease [`extend`](Self::extend) extends; for a guard [`with_sure_until`](Self::with_sure_until).
    #[cfg(any(test, feature = "mysql", feature = "redis"))]
    pub(crate) fn with_lease(mut self, hold: Weak<dyn ExtendableLease>) -> Self {
        for expiry in &mut self.expiries {
            expiry.extendable = Some(Weak::clone(&hold));
        }
        self
    }

    /// Makes one guard for several: it has all their fences, and counts as lost once the sure time of any of them is over.
    pub(crate) fn of_parts(name: &str, parts: &[Self]) -> (Self, Keeper) {
        let (guard, keeper) = Self::new(name, None);
        let fences = parts.iter().flat_map(|part| part.fences.clone()).collect();
        let expiries = parts.iter().flat_map(|part| part.expiries.clone()).collect();
        let guard = Self { fences, expiries, ..guard };
        (guard, keeper)
    }

    /// Returns the lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns this hold's fencing token; `None` if it has none, or several as a [`MultiLock`](crate::MultiLock)'s.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        match self.fences[..] {
            [(_, fence)] => Some(fence),
            _ => None,
        }
    }

    /// Returns the fencing tokens with their locks' names: one or none for a plain guard, those of all parts for a
    /// [`MultiLock`](crate::MultiLock)'s.
    pub fn fences(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.fences.iter().map(|(name, fence)| (&**name, *fence))
    }

    /// Completes once the lock is no longer surely held: its lease or session ended or may have, or its client was closed.
    ///
    /// A lease or session that runs out is reported before another can have the lock, as far as this process runs at
    /// all: a process that was stopped beyond its lease learns of it when it continues. No lock can report in time what
    /// takes it away in the middle of its lease: a key that is deleted or evicted, a server that restarts without it, a
    /// fail-over to a replica that lacks it, a server's clock that jumps ahead. Those are reported at the next renewal, at
    /// the latest after a third of the lease, and at the release if nothing is renewed (a fixed lease, ZooKeeper). So is a
    /// suspension of the machine, though [`is_lost`](Self::is_lost) knows that at once on Linux. A virtual machine that its
    /// host pauses, or restores from a snapshot, sees no time pass by any clock: its holder learns of a loss at its next
    /// renewal too, and may write before. If it matters, let the resource check the [`fence`](Guard::fence).
    ///
    /// # Cancel safety
    ///
    /// Safe: it may be dropped and called again at any time.
    pub async fn lost(&self) {
        let mut told = pin!(self.lost.cancelled());
        // Any poll also checks the clock.
        poll_fn(|cx| if self.is_lost() { Poll::Ready(()) } else { told.as_mut().poll(cx) }).await;
    }

    /// Returns whether the lock is lost, by the clock too, before anything has reported it; also while the client's
    /// runtime does not run. A pause of a virtual machine is not on the clock: see [`lost`](Self::lost).
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || self.expiries.iter().any(|expiry| expiry.sure_until.is_over())
    }

    /// Returns how long the lock is surely held if the server is not heard from again: less than a lease or a session,
    /// zero once it is lost, and `None` if it has neither, as a [`TableLock`](crate::mysql::TableLock). A renewal extends it. Of
    /// several locks as one it is the shortest. A virtual machine that its host pauses has less left than it says.
    ///
    /// ```no_run
    /// # fn example(guard: &oversell_lock::Guard) {
    /// use std::time::Duration;
    ///
    /// let enough = guard.sure_for().is_none_or(|left| left > Duration::from_secs(2));
    /// # }
    /// ```
    #[must_use]
    pub fn sure_for(&self) -> Option<Duration> {
        if self.is_lost() {
            return Some(Duration::ZERO);
        }
        self.expiries.iter().map(|expiry| expiry.sure_until.time_left()).min()
    }

    /// Makes the lease last at least `lease` from now, of 1 ms to ten years. This is the only way to extend a
    /// [`Lease::Fixed`](crate::Lease::Fixed). Of several locks as one, those with a lease are extended.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if it is lost, [`LockError::Unavailable`] if the server did not answer, [`LockError::Refused`] if
    /// it refused: the lease, or some of several, may be extended. [`LockError::Invalid`] if there is no lease that can be
    /// extended, as in ZooKeeper and etcd, or `lease` is out of its range.
    ///
    /// # Cancel safety
    ///
    /// It may be extended or not; calling it again is safe.
    pub async fn extend(&self, lease: Duration) -> Result<(), LockError> {
        if !(Duration::from_millis(1)..=MAX_DURATION).contains(&lease) {
            let rule = "its lease must be 1 ms to ten years";
            return Err(LockError::invalid(&*self.name, rule));
        }
        if self.expiries.iter().all(|expiry| expiry.extendable.is_none()) {
            return Err(LockError::invalid(&*self.name, "has no lease to extend"));
        }
        for Expiry { sure_until, extendable } in &self.expiries {
            let (Some(extendable), sent) = (extendable, Instant::now()) else {
                continue;
            };
            let extended = match extendable.upgrade() {
                Some(hold) if !self.is_lost() => hold.extend(lease).await?,
                _ => false,
            };
            if !extended || !sure_until.extend(sent + sure_part(lease)) {
                return Err(LockError::lost(&*self.name));
            }
        }
        Ok(())
    }

    /// Runs `work` while the lock is held. At the loss the work is dropped, at whichever `await` it is. Work that
    /// finished when the loss is noticed may have overlapped with another holder's, and is reported as lost too.
    ///
    /// What the work has already sent, a statement for example, continues. If that must not happen, let the resource
    /// check the [`fence`](Self::fence).
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock was lost before the work finished, or by then.
    ///
    /// # Cancel safety
    ///
    /// As the work's; the lock stays held.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LockError> {
        let done = tokio::select! {
            biased;
            () = self.lost() => None,
            done = work => Some(done),
        };
        // One poll of the work may outlast the lease.
        done.filter(|_| !self.is_lost()).ok_or_else(|| LockError::lost(&*self.name))
    }

    /// Releases the lock and waits for the server's answer.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the hold was or may have been gone, [`LockError::Unavailable`] if the server did not answer: the
    /// release is then repeated in the background. [`LockError::Refused`] if it refused: the lock may last until its lease or
    /// session ends.
    ///
    /// # Cancel safety
    ///
    /// Safe: the release continues in the background.
    pub async fn release(self) -> Result<(), LockError> {
        let (reply, answer) = oneshot::channel();
        // A keeper that is gone takes no request.
        drop(self.keeper.send(reply));
        let gone = |_| Err(LockError::lost(&*self.name));
        answer.await.unwrap_or_else(gone)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.name)
            .field("fences", &self.fences)
            .field("lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[tokio::test]
    async fn a_keeper_that_ends_without_a_word_has_lost_the_lock() {
        let (guard, keeper) = Guard::new("lock", None);
        let kept = tokio::spawn(async move {
            let _keeper = keeper;
            std::panic::resume_unwind(Box::new("a bug"));
        });
        assert!(kept.await.is_err());
        guard.lost().await;
        assert!(matches!(guard.release().await, Err(LockError::Lost { .. })));
    }

    #[tokio::test]
    async fn work_ends_at_the_loss_and_no_later() {
        let (guard, keeper) = Guard::new("lock", None);
        assert_eq!(guard.run(async { 7 }).await.unwrap(), 7);
        let (lost, ()) = tokio::join!(guard.run(std::future::pending::<()>()), async { keeper.tell_lost() });
        assert!(matches!(lost, Err(LockError::Lost { .. })));
    }

    /// Work that blocks its thread ends in the poll in which it began, and so does the lease.
    #[tokio::test]
    async fn work_that_outlives_the_lock_is_not_answered_as_done() {
        let (guard, keeper) = Guard::new("lock", None);
        let lost = guard.run(async { keeper.tell_lost() }).await;
        assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
        assert_eq!(guard.sure_for(), Some(Duration::ZERO));
    }

    impl ExtendableLease for AtomicBool {
        fn extend(self: Arc<Self>, _: Duration) -> BoxFuture<'static, Result<bool, LockError>> {
            std::future::ready(Ok(self.load(SeqCst))).boxed()
        }
    }

    #[tokio::test]
    async fn a_guard_tells_how_long_it_is_sure_and_is_extended() {
        let second = Duration::from_secs(1);
        let there = Arc::new(AtomicBool::new(true));
        let (short, long) = (SureUntil::new(Instant::now() + 60 * second), SureUntil::new(Instant::now() + 600 * second));
        let (extendable, _first) = Guard::with_sure_until(short, "leased", None);
        let hold = Arc::downgrade(&there);
        let extendable = extendable.with_lease(hold);
        let (session, _second) = Guard::with_sure_until(long, "session", None);
        let (plain, _third) = Guard::new("plain", None);
        let parts = [extendable, session, plain];
        let (all, _fourth) = Guard::of_parts("all", &parts);
        let about = |sure: Option<Duration>, wanted: Duration| sure.is_some_and(|sure| sure <= wanted && sure > wanted / 2);
        assert!(about(all.sure_for(), 60 * second), "the shortest counts");
        assert_eq!(parts[2].sure_for(), None);
        for without in &parts[1..] {
            let none = without.extend(second).await;
            assert!(matches!(none, Err(LockError::Invalid { .. })), "{none:?}");
        }
        let none = all.extend(Duration::ZERO).await;
        assert!(matches!(none, Err(LockError::Invalid { .. })), "{none:?}");
        all.extend(500 * second).await.unwrap();
        assert!(about(parts[0].sure_for(), 500 * second), "extended");
        all.extend(second).await.unwrap();
        assert!(about(all.sure_for(), 500 * second), "never shorter");
        there.store(false, SeqCst);
        let lost = all.extend(900 * second).await;
        assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    }
}
