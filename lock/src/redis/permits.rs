//! The semaphore whose permits expire: what a holder that crashed had comes back when its lease ends.
//!
//! 1. Set the permits, once, as for the plain [`semaphore`](super::semaphore).
//! 2. Wait in this process's line; its head takes one permit by one script, which gives it an id and a lease in
//!    `{n}:timeout`, after it has brought back those whose lease has ended. Where none is free it says when the next one
//!    may be.
//! 3. A task keeps it: renewed every third by a watchdog, or fixed ([`Lease`]); the [`Guard`] says when it was lost.
//! 4. Given back by its id. One that had expired is not given back twice: the release says [`LockError::Lost`].
//!
//! What it survives: a holder that dies, a lost message, a caller that goes away, a command without an answer (its id is
//! given back in the background, or expires). **What breaks it**: a holder that is paused beyond its lease goes on though
//! its permit is another's; a Redis whose clock is set forward ends leases early. Nobody brings expired permits back
//! while nobody asks for one: [`available_permits`](Permits::available_permits) counts the free ones only.
//!
//! Formats: `RPermitExpirableSemaphore` of Redisson 4 (STRING `n`, ZSET `{n}:timeout`, channel `redisson_sc:{n}`). An id
//! is 16 raw bytes; 3.13.6 writes 32 hex characters, and the two do not mix. Next to read: `latch.rs`.

use super::{
    client::{Failure, RedisClient},
    engine::{HeadOfLine, Line, Tried, fail, hint, wait_for},
    hold::{Asked, Claim, Hold},
    scripts::{self, suffixed},
    semaphore::{free_permits, semaphore_line, set_permits},
};
use crate::{Guard, Lease, LockError};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use uuid::Uuid;

/// A handle on one semaphore whose permits expire. Cloning it is cheap.
///
/// Source: Redisson's `RPermitExpirableSemaphore`.
///
/// ```no_run
/// # use oversell_lock::{Lease, LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let permits = redis.permits("permits").lease(Lease::Fixed(Duration::from_secs(60)));
/// permits.try_set_permits(3).await?;
/// let permit = permits.acquire(Duration::from_secs(5)).await?;
/// permit.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Permits {
    client: RedisClient,
    name: String,
    line: Arc<Line>,
    lease: Lease,
}

/// One permit, by its id.
#[derive(Debug)]
struct PermitClaim {
    permits: Permits,
    id: Uuid,
}

impl RedisClient {
    /// A handle on the semaphore `name`, whose permits expire. The lease is the client's, renewed while the holder lives.
    #[must_use]
    pub fn permits(&self, name: &str) -> Permits {
        let name = self.key(name);
        Permits {
            client: self.clone(),
            line: semaphore_line(self, &name),
            name,
            lease: self.lease(),
        }
    }
}

impl Permits {
    /// The same handle with another lease, of at least 1 ms.
    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        Self { lease, ..self }
    }

    /// The name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the semaphore with so many permits; `false` where it is there already, even with none free.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may be set or not; asking again is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping it, it may be set or not.
    pub async fn try_set_permits(&self, permits: u32) -> Result<bool, LockError> {
        set_permits(&self.client, &self.line, &self.name, self.leases(), permits).await
    }

    /// How many permits are free now, without those that have expired and that nobody has brought back yet.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn available_permits(&self) -> Result<i64, LockError> {
        free_permits(&self.client, &self.name).await
    }

    /// Takes one permit, waiting for it at most `wait`. A semaphore that is not set has none.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] where none was free for all of `wait`, [`LockError::Unavailable`] where Redis is down or did
    /// not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: what an unanswered command may have taken is given back in the
    /// background.
    pub async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let asked = Asked::new(&self.name, None, self.lease, wait)?;
        let had = match self.line.turn(wait, asked.until).await? {
            Some(place) => {
                let attempt = || self.clone().attempt(place.clone());
                wait_for(&self.client, Some(&self.line.news), asked.until, attempt).await?
            }
            None => None,
        };
        Ok(Arc::new(had.ok_or_else(|| asked.taken(&self.name))?).guard())
    }

    /// Takes one permit if it is free now, whoever waits for one.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Guard, LockError> {
        self.acquire(Duration::ZERO).await
    }

    /// One try.
    async fn attempt(self, place: HeadOfLine) -> Result<Tried<Hold<PermitClaim>>, LockError> {
        let (leased, lease) = (Instant::now(), self.lease);
        let claim = Arc::new(PermitClaim {
            permits: self,
            id: Uuid::new_v4(),
        });
        let permits = &claim.permits;
        let mut script = scripts::PERMITS_ACQUIRE.key(&permits.name);
        script.key(permits.leases()).key(permits.line.channel());
        script.arg(claim.id.as_bytes()).arg(lease.millis());
        match permits.client.run::<Option<i64>>(&script).await {
            Ok(None) => Ok(Hold::new(claim, None, lease, leased, ()).tried()),
            Ok(Some(millis)) => Ok(Tried::Wait(hint(millis))),
            Err(failure) => {
                failure.undo(&claim, lease);
                Err(fail(&place, failure))
            }
        }
    }

    fn leases(&self) -> String {
        suffixed(&self.name, "timeout")
    }
}

impl Claim for PermitClaim {
    type Turn = ();

    fn client(&self) -> &RedisClient {
        &self.permits.client
    }

    fn name(&self) -> &str {
        &self.permits.name
    }

    async fn renew(&self, lease: Lease) -> Result<bool, Failure> {
        let mut script = scripts::PERMITS_RENEW.key(self.permits.leases());
        self.permits
            .client
            .run(script.arg(self.id.as_bytes()).arg(lease.millis()))
            .await
    }

    async fn release(&self) -> Result<bool, Failure> {
        let mut script = scripts::PERMITS_RELEASE.key(&self.permits.name);
        script
            .key(self.permits.leases())
            .key(self.permits.line.channel());
        self.permits
            .client
            .run(script.arg(self.id.as_bytes()))
            .await
    }
}
