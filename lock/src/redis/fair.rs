//! The fair lock of Redisson: who comes first has it first, over all processes.
//!
//! 1. Try: one script takes the lock if it is free and nobody is before us, or gives us a place at the end of the queue,
//!    with a score that says until when we count as alive.
//! 2. Taken: subscribe to our own channel, try again, then wait for the message, the end of the lease, or half a second,
//!    whichever comes first; try again. Each try says that we live.
//! 3. Who frees the lock tells the head of the queue, and nobody else.
//! 4. Who gives up leaves the queue at once; if it was the head and the lock is free, the next one is told.
//!
//! The score is the last waiter's, or now and what is left of the lease, plus our own wait limit. Who has its turn, or
//! leaves, takes its limit off the scores of those behind it: so the queue does not remember those who are gone. Each
//! request is a waiter of its own in Redis, and there is no line in this process: a grant costs a step per waiter.
//!
//! What it survives: a waiter that dies (it falls out when it is the head and its score has passed), a holder that dies
//! (the lease ends), a message that is lost, a caller that goes away at any point, a command that gets no answer, clients
//! whose clocks differ. **What breaks it**: a holder that is paused beyond its lease and then writes; a waiter that is
//! paused beyond its score loses its place and goes to the end; a dead waiter holds up the others until its score has
//! passed, its wait limit at most once it is the head: wait shortly. A Java client takes the time from its own clock, and
//! one whose clock is ahead drops living waiters.
//!
//! Formats: `RFairLock` of Redisson 3 and 4: HASH `n`, LIST `redisson_lock_queue:{n}`, ZSET `redisson_lock_timeout:{n}`,
//! channel `redisson_lock__channel:{n}:<owner>`. Redis from 5.0. Next to read: `fair_seat.rs`.

use super::{
    client::RedisClient,
    contend::RECHECK,
    fair_seat::{Attempt, FairHold, Seat},
    lease::Lease,
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::Instant};

/// The wait limit of one who waits longer than this, as in Redisson; trying again keeps it alive beyond that.
const LONGEST_LIMIT: Duration = Duration::from_secs(5 * 60);

/// A handle on one fair lock in Redis. Each acquire is an owner of its own, unless the handle is given one.
#[derive(Debug, Clone)]
pub struct RedisFairLock {
    client: RedisClient,
    name: String,
    owner: Option<Owner>,
    lease: Lease,
}

/// One acquire. It runs in a task of its own, so that every command has its end even if the caller goes away.
struct Waiter {
    seat: Arc<Seat>,
    lease: Lease,
    limit: Duration,
    until: Instant,
}

type Outcome = Result<Option<FairHold>, LockError>;

impl RedisClient {
    /// A handle on the fair lock `name`, which is had in order of arrival.
    #[must_use]
    pub fn fair_lock(&self, name: &str) -> RedisFairLock {
        let name = self.stations().key(name);
        RedisFairLock { client: self.clone(), name, owner: None, lease: self.lease() }
    }
}

impl RedisFairLock {
    /// The same handle for `owner`: while it holds the lock it takes it again at once, and must release it as often.
    ///
    /// Acquires of one owner that run at the same time share one place in the queue; when one of them gives up, the
    /// others go to its end.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// The same handle with a lease of its own. A hold never shortens the lease of another hold of its owner.
    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        Self { lease, ..self }
    }
}

impl Lock for RedisFairLock {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let seat = match self.owner {
            Some(owner) => self.client.seats().at(&self.client, &self.name, owner),
            None => Arc::new(Seat::new(self.client.clone(), &self.name, self.client.owner())),
        };
        let (limit, until) = (wait.min(LONGEST_LIMIT), Instant::now() + wait);
        let (reply, answer) = oneshot::channel();
        self.client.spawn(Waiter { seat, lease: self.lease, limit, until }.answer(reply));
        let stopped = |_| LockError::Unavailable { server: "redis", reason: "the runtime is shutting down".into() };
        let hold = answer.await.map_err(stopped)??;
        let hold = hold.ok_or_else(|| LockError::Taken { name: self.name.clone(), waited: wait })?;
        let (guard, keeper) = Guard::new(self.name.as_str(), None);
        self.client.spawn(hold.keep(keeper));
        Ok(guard)
    }
}

impl Waiter {
    async fn answer(self, mut reply: oneshot::Sender<Outcome>) {
        let outcome = self.wait(&mut reply).await;
        // A caller that has gone gives the hold back: dropping it frees the lock.
        drop(reply.send(outcome));
    }

    async fn wait(&self, reply: &mut oneshot::Sender<Outcome>) -> Outcome {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let hint = match self.seat.attempt(self.lease, self.limit, left.min(self.limit)).await? {
                Attempt::Had(hold) => return Ok(Some(hold)),
                Attempt::Taken(hint) => hint.unwrap_or(RECHECK),
            };
            if left.is_zero() {
                return self.leave().await;
            }
            // A release between the try and the subscription would be missed: after either, look again.
            let pause = hint.max(Duration::from_millis(1)).min(RECHECK).min(left);
            tokio::select! {
                biased;
                () = reply.closed() => return self.leave().await,
                () = self.seat.woken(pause) => {}
            }
        }
    }

    async fn leave(&self) -> Outcome {
        if !self.limit.is_zero() {
            self.seat.leave().await;
        }
        Ok(None)
    }
}
