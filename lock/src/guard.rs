//! The one guard of every lock: a holder's end of a channel to the task that keeps the lock.
//!
//! Each hold has a keeper, a task of its own that renews it, watches it and gives it back. Because one task
//! does all three, a renewal can never outlive its lock, and a holder that is dropped, at any `await`, is
//! released all the same.

use crate::{LockError, sure_until::SureUntil};
use std::{fmt, sync::Arc};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A fencing token: a number that grows with each hold, for the resource to refuse an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A held lock.
///
/// [`release`](Guard::release) is the normal way to give it back and says whether that worked. Dropping the
/// guard asks for the same in the background and tells nobody.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct Guard {
    name: String,
    fence: Option<Fence>,
    lost: CancellationToken,
    sure_until: Option<Arc<SureUntil>>,
    keeper: oneshot::Sender<oneshot::Sender<Result<(), LockError>>>,
}

/// The keeper's end of a [`Guard`]: for the locks of this crate, and for those that others add to it.
#[derive(Debug)]
pub struct Keeper {
    lost: CancellationToken,
    asked: oneshot::Receiver<oneshot::Sender<Result<(), LockError>>>,
}

/// The holder wants to give the lock back, and may want to hear how that went.
#[derive(Debug)]
pub struct Release(Option<oneshot::Sender<Result<(), LockError>>>);

impl Guard {
    /// A guard and the end that its keeper task holds.
    pub fn new(name: impl Into<String>, fence: Option<Fence>) -> (Self, Keeper) {
        let (keeper, asked) = oneshot::channel();
        let lost = CancellationToken::new();
        let guard = Self { name: name.into(), fence, lost: lost.clone(), sure_until: None, keeper };
        (guard, Keeper { lost, asked })
    }

    /// A guard of what surely lasts until then, and no longer: it knows by the clock that it is lost, also before its
    /// keeper has told it.
    #[cfg(feature = "zookeeper")]
    pub(crate) fn until(sure_until: Arc<SureUntil>, name: &str, fence: Option<Fence>) -> (Self, Keeper) {
        let (guard, keeper) = Self::new(name, fence);
        (Self { sure_until: Some(sure_until), ..guard }, keeper)
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// This hold's fencing token, where the lock has one.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.fence
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
    pub fn lost(&self) -> WaitForCancellationFuture<'_> {
        self.lost.cancelled()
    }

    /// Whether the lock was lost already.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || self.sure_until.as_ref().is_some_and(|sure| sure.is_over())
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
        let gone = LockError::Lost { name: self.name };
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
            .field("fence", &self.fence)
            .field("lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

impl Keeper {
    /// Completes when the holder releases or drops its guard.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is consumed before it completes. Once it has completed it must not be called again.
    pub async fn asked_to_release(&mut self) -> Release {
        Release((&mut self.asked).await.ok())
    }

    /// Tells the holder that the lock is gone.
    pub fn tell_lost(&self) {
        self.lost.cancel();
    }
}

/// A keeper that ends, by a panic or with its runtime, keeps nothing any more, and the holder must hear it.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.lost.cancel();
    }
}

impl Release {
    /// Answers the holder, if it still listens.
    pub fn done(self, result: Result<(), LockError>) {
        if let Some(reply) = self.0 {
            reply.send(result).ok();
        } else if let Err(error) = result {
            tracing::debug!(%error, "a dropped guard was not released cleanly");
        }
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
}
