//! How every lock of the `RLock` family is taken: plain, fenced or spinning, once or again.
//!
//! 1. An owner that has it already takes it once more, past everybody who waits in this process. Tasks of one owner come
//!    in one after the other, and are then inside together.
//! 2. The others wait in this process's line; only its head contends in Redis ([`Queue`](crate::local::Queue)).
//! 3. Try: one script takes the lock if it is free, or says how long its lease still runs.
//! 4. Taken: subscribe to its channel, try again, then wait for the message, the end of the lease, or [`RECHECK`],
//!    whichever comes first; try again. One that spins only pauses.
//! 5. Had: a task keeps it ([`hold`](super::hold)).
//!
//! What it survives: a caller that goes away at any point, a message that is lost (the timed re-check), a command that
//! gets no answer.
//!
//! Next to read: `hold.rs`.

use super::{
    client::{Line, RedisClient, Tried},
    hold::Hold,
    place::{Place, free_unanswered},
    station::to_the_end,
    terms::{Asks, Backoff, Taken, Terms},
};
use crate::{
    Guard, LockError,
    local::{Head, Turn},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Who waits looks again after this, though nobody has said that the lock is free.
pub const RECHECK: Duration = Duration::from_millis(500);

/// One contender's handle.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    pub(super) client: RedisClient,
    pub(super) line: Arc<Line>,
    pub(super) asks: Asks,
}

/// What every handle of the family has: an owner, a lease, and the lock.
macro_rules! handle {
    ($handle:ident) => {
        impl $handle {
            /// Takes it as `owner`, which may take it again while it has it: past everybody who waits, and as often as
            /// it gives it back, in any order. An owner belongs to one client ([`RedisClient::owner`]).
            #[must_use]
            pub fn owner(mut self, owner: crate::Owner) -> Self {
                self.0.asks.owner = Some(owner);
                self
            }

            /// Takes it for `lease`. Without this it is the client's, renewed every third. A lease that an owner's other
            /// hold relies on is never made shorter.
            #[must_use]
            pub fn lease(mut self, lease: crate::redis::Lease) -> Self {
                self.0.asks.lease = Some(lease);
                self
            }
        }

        impl crate::Lock for $handle {
            fn name(&self) -> &str {
                &self.0.line.name
            }

            async fn acquire(&self, wait: std::time::Duration) -> Result<crate::Guard, crate::LockError> {
                self.0.acquire(wait).await
            }
        }
    };
}

pub(super) use handle;

/// What one try came to.
enum Attempt {
    Had(Hold),
    /// Another has it; its lease runs for so long, or for ever.
    Refused(Head<Hold, Terms>, Option<Duration>),
}

impl Contender {
    /// Takes the lock, waiting for it at most `wait`.
    pub(super) async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (started, terms) = (Instant::now(), self.asks.terms(&self.client));
        if self.line.returning.lock().contains(&terms.owner) {
            return Err(unanswered());
        }
        let taken = || LockError::Taken { name: self.line.name.clone(), waited: wait };
        let entrance = self.asks.owner.map(|owner| self.line.entrance(owner));
        let _entering = match &entrance {
            Some(entrance) => Some(timeout(wait, entrance.lock()).await.map_err(|_| taken())?),
            None => None,
        };
        if entrance.is_some()
            && let Some(place) = self.line.inside.place_of(terms.owner)
            && let Some(hold) = self.again(terms, place).await?
        {
            return Ok(hold.guarded(&self.client));
        }
        let left = wait.saturating_sub(started.elapsed());
        let hold = match self.line.queue.join(terms, left).await {
            Some(Turn::Handed(hold)) => Some(hold),
            Some(Turn::Contend(head)) => self.contend(terms, head, started + wait).await?,
            Some(Turn::Failed(error)) => return Err(error),
            None => None,
        };
        Ok(hold.ok_or_else(taken)?.guarded(&self.client))
    }

    /// Once more for the owner that has `place`; `None` where it has lost the lock meanwhile.
    async fn again(&self, terms: Terms, place: Arc<Place>) -> Result<Option<Hold>, LockError> {
        let (client, line) = (self.client.clone(), Arc::clone(&self.line));
        to_the_end(&self.client, async move {
            let leased = Instant::now();
            match client.acquire(&line, &terms, true).await {
                Ok(Tried::Taken(fence)) => Ok(Some(Hold::again(place, Taken { terms, fence, leased }))),
                Ok(Tried::Refused(_)) => {
                    place.revoke();
                    Ok(None)
                }
                Err(error) => {
                    place.doubt();
                    Err(error)
                }
            }
        })
        .await
    }

    /// Contends in Redis, at the head of this process's line.
    async fn contend(
        &self,
        terms: Terms,
        mut head: Head<Hold, Terms>,
        until: Instant,
    ) -> Result<Option<Hold>, LockError> {
        let mut backoff = Backoff::new();
        loop {
            let lease = match self.attempt(terms, head).await? {
                Attempt::Had(hold) => return Ok(Some(hold)),
                Attempt::Refused(given_back, lease) => {
                    head = given_back;
                    lease
                }
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if terms.spins {
                sleep(backoff.next().min(left)).await;
                continue;
            }
            // A release between the try and the subscription would be missed: so try again at once.
            if timeout(left, self.line.released.begin()).await == Ok(true) {
                continue;
            }
            let pause = RECHECK.min(left).min(lease.unwrap_or(RECHECK));
            // Woken or not: look again.
            timeout(pause, self.line.released.news().notified()).await.ok();
        }
    }

    /// One try, in a task of its own: it runs to its end even if the caller goes away, and what it took is then
    /// dropped, which frees it.
    async fn attempt(&self, terms: Terms, head: Head<Hold, Terms>) -> Result<Attempt, LockError> {
        let (client, line) = (self.client.clone(), Arc::clone(&self.line));
        to_the_end(&self.client, async move {
            let leased = Instant::now();
            match client.acquire(&line, &terms, false).await {
                Ok(Tried::Taken(fence)) => {
                    let taken = Taken { terms, fence, leased };
                    Ok(Attempt::Had(Hold::new(Place::new(&client, &line, &taken, Some(head)), taken)))
                }
                Ok(Tried::Refused(lease)) => Ok(Attempt::Refused(head, lease)),
                Err(error) => {
                    free_unanswered(&client, &line, terms);
                    head.fail(&error);
                    Err(error)
                }
            }
        })
        .await
    }
}

fn unanswered() -> LockError {
    let reason = "an earlier command of this owner was not answered, and what it may have taken is being given back";
    LockError::Unavailable { server: "redis", reason: reason.into() }
}
