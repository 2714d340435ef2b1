//! The lock of Redisson: a hash with its owner, a lease that is renewed, a channel that tells when it is free.
//!
//! 1. Wait in this process's line; only its head contends in Redis ([`Queue`](crate::local::Queue)).
//! 2. Try: one script takes the lock if it is free, or says how long its lease still runs.
//! 3. Taken: subscribe to its channel, try again, then wait for the message, the end of the lease, or half a second,
//!    whichever comes first; try again.
//! 4. Had: a task keeps it ([`hold`](super::hold)).
//!
//! What it survives: a holder that dies (the lease ends), a message that is lost (the timed re-check), a caller that
//! goes away at any point, a command that gets no answer. **What breaks it**: a holder that is paused beyond its lease
//! and then writes; a primary that fails before its replica has the key.
//!
//! Formats: `RLock` of Redisson 3 and 4. Next to read: `hold.rs`.

use super::{
    client::{Line, RedisClient},
    hold::{Hold, free_unanswered},
};
use crate::{
    Guard, Lock, LockError, Owner,
    local::{Head, Turn},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// Who waits looks again after this, though nobody has said that the lock is free.
pub const RECHECK: Duration = Duration::from_millis(500);

/// A handle on one lock in Redis. Not re-entrant: each acquire is an owner of its own, and a second one waits for the
/// first to end.
#[derive(Debug)]
pub struct RedisLock {
    client: RedisClient,
    line: Arc<Line>,
}

/// What one try came to.
enum Attempt {
    Had(Hold),
    /// Another has it; its lease runs for so long, or for ever.
    Taken(Head<Hold>, Option<Duration>),
}

impl RedisLock {
    pub(super) fn new(client: RedisClient, line: Arc<Line>) -> Self {
        Self { client, line }
    }

    /// Contends in Redis, at the head of this process's line.
    async fn contend(&self, owner: Owner, mut head: Head<Hold>, until: Instant) -> Result<Option<Hold>, LockError> {
        loop {
            let lease = match self.attempt(owner, head).await? {
                Attempt::Had(hold) => return Ok(Some(hold)),
                Attempt::Taken(given_back, lease) => {
                    head = given_back;
                    lease
                }
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // A release between the try and the subscription would be missed: so try again at once.
            if timeout(left, self.line.subscribe()).await == Ok(true) {
                continue;
            }
            let pause = RECHECK.min(left).min(lease.unwrap_or(RECHECK));
            // Woken or not: look again.
            timeout(pause, self.line.freed.notified()).await.ok();
        }
    }

    /// One try, in a task of its own: it runs to its end even if the caller goes away, and what it took is then
    /// dropped, which frees it.
    async fn attempt(&self, owner: Owner, head: Head<Hold>) -> Result<Attempt, LockError> {
        let (client, line) = (self.client.clone(), Arc::clone(&self.line));
        let attempt = self.client.spawn(async move {
            let sent = Instant::now();
            match client.acquire(&line.name, owner).await {
                Ok(None) => Ok(Attempt::Had(Hold::new(client, line, owner, sent, head))),
                Ok(Some(lease)) => Ok(Attempt::Taken(head, u64::try_from(lease).ok().map(Duration::from_millis))),
                Err(error) => {
                    client.spawn(free_unanswered(client.clone(), line, owner));
                    head.fail(&error);
                    Err(error)
                }
            }
        });
        match attempt.await {
            Ok(outcome) => outcome,
            Err(stopped) => Err(LockError::Unavailable { server: "redis", reason: stopped.to_string() }),
        }
    }
}

impl Lock for RedisLock {
    fn name(&self) -> &str {
        &self.line.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (started, owner) = (Instant::now(), self.client.owner());
        let hold = match self.line.queue.join(owner, wait).await {
            Some(Turn::Handed(hold)) => Some(hold),
            Some(Turn::Contend(head)) => self.contend(owner, head, started + wait).await?,
            Some(Turn::Failed(error)) => return Err(error),
            None => None,
        };
        let hold = hold.ok_or_else(|| LockError::Taken { name: self.line.name.clone(), waited: wait })?;
        let (guard, keeper) = Guard::new(self.line.name.as_str(), None);
        self.client.spawn(hold.keep(keeper));
        Ok(guard)
    }
}
