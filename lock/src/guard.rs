//! The one guard of every lock: a holder's end of a channel to the task that keeps the lock.
//!
//! Next to read: `keeper.rs`, the other end.

use crate::{Keeper, LockError, sure_until::SureUntil};
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A fencing token: a number that grows with each hold, for the resource to refuse an older one.
///
/// ```
/// use oversell_lock::Fence;
///
/// assert!(Fence(8) > Fence(7), "the later holder has the higher one");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A held lock.
///
/// [`release`](Guard::release) is the normal way to give it back and says whether that worked. Dropping the
/// guard asks for the same in the background and tells nobody.
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
    name: String,
    fences: Vec<(String, Fence)>,
    lost: CancellationToken,
    /// Its own end, or those of its parts.
    sure_until: Vec<Arc<SureUntil>>,
    keeper: oneshot::Sender<oneshot::Sender<Result<(), LockError>>>,
}

impl Guard {
    /// Makes a guard and the end that its keeper task holds.
    pub fn new(name: impl Into<String>, fence: Option<Fence>) -> (Self, Keeper) {
        let (keeper, asked) = oneshot::channel();
        let (name, lost) = (name.into(), CancellationToken::new());
        let fences = fence
            .map(|fence| (name.clone(), fence))
            .into_iter()
            .collect();
        let guard = Self {
            name,
            fences,
            lost: lost.clone(),
            sure_until: Vec::new(),
            keeper,
        };
        (guard, Keeper { lost, asked })
    }

    /// A guard of what surely lasts until then, and no longer: it knows by the clock that it is lost, also before its
    /// keeper has told it.
    #[cfg(any(feature = "mysql", feature = "redis", feature = "zookeeper"))]
    pub(crate) fn until(
        sure_until: Arc<SureUntil>,
        name: &str,
        fence: Option<Fence>,
    ) -> (Self, Keeper) {
        let (guard, keeper) = Self::new(name, fence);
        (
            Self {
                sure_until: vec![sure_until],
                ..guard
            },
            keeper,
        )
    }

    /// A guard of several holds as one, which is lost with the first of them.
    pub(crate) fn of(name: &str, parts: &[Self]) -> (Self, Keeper) {
        let (guard, keeper) = Self::new(name, None);
        let fences = parts.iter().flat_map(|part| part.fences.clone()).collect();
        let sure_until = parts
            .iter()
            .flat_map(|part| part.sure_until.clone())
            .collect();
        (
            Self {
                fences,
                sure_until,
                ..guard
            },
            keeper,
        )
    }

    /// Returns the lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns this hold's fencing token, where the lock has one, and only one.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        match self.fences[..] {
            [(_, fence)] => Some(fence),
            _ => None,
        }
    }

    /// Returns the fencing tokens of all parts that have one, with their locks' names: of one part, or of a
    /// [`MultiLock`](crate::MultiLock)'s.
    pub fn fences(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.fences
            .iter()
            .map(|(name, fence)| (name.as_str(), *fence))
    }

    /// Completes once the lock is no longer surely held: its lease ran out unrenewed, its session ended.
    ///
    /// A lease or session that runs out is told before another can have the lock, as far as this process runs at all:
    /// one that is stopped beyond its lease learns of it when it goes on. What takes the lock away in the middle of its
    /// lease no lock can tell in time: a key that is deleted or evicted, a server that comes back without it, a failover
    /// to a replica that does not have it, a clock of the server that jumps ahead, a machine that is suspended (its
    /// monotonic clock stands still). That is told at the next renewal, at the latest after a third of the lease. Where
    /// it matters, let the resource check the [`fence`](Guard::fence).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped and called again at any time.
    pub async fn lost(&self) {
        let mut told = pin!(self.lost.cancelled());
        // A future that is polled for another reason looks at the clock too.
        poll_fn(|cx| {
            if self.is_lost() {
                Poll::Ready(())
            } else {
                told.as_mut().poll(cx)
            }
        })
        .await;
    }

    /// Returns whether the lock was lost already. It is known by the clock too, also where nobody could tell yet.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || self.sure_until.iter().any(|sure| sure.is_over())
    }

    /// Does `work` as long as the lock is held: at the loss the work is dropped, at whichever `await` it is.
    ///
    /// What the work has handed to others by then, a statement that is under way, say, goes on. Where that must not
    /// happen, let the resource check the [`fence`](Self::fence).
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] where the lock was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// As the work's; the lock is held on.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LockError> {
        tokio::select! {
            biased;
            () = self.lost() => Err(LockError::lost(&self.name)),
            done = work => Ok(done),
        }
    }

    /// Gives the lock back and waits until the server has answered.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] where it was not ours any more, [`LockError::Unavailable`] where the server did
    /// not answer: it then goes with its lease or session.
    ///
    /// # Cancel safety
    ///
    /// The release goes on in the background when this future is dropped.
    pub async fn release(self) -> Result<(), LockError> {
        let gone = LockError::lost(self.name);
        let (reply, answer) = oneshot::channel();
        if self.keeper.send(reply).is_err() {
            return Err(gone);
        }
        answer.await.unwrap_or(Err(gone))
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
        let (lost, ()) = tokio::join!(guard.run(std::future::pending::<()>()), async {
            keeper.tell_lost()
        });
        assert!(matches!(lost, Err(LockError::Lost { .. })));
    }
}
