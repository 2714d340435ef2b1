//! Redisson's semaphore: a number of permits, and a channel that announces returned ones.
//!
//! 1. [`try_set_permits`](RedisSemaphore::try_set_permits) sets the permits once.
//! 2. Join this process's line; its head takes permits by one script, or waits for the channel or half a second
//!    ([`engine`](super::engine)). The script returns how many are left, so the waiters that fit follow at once.
//! 3. The script also writes a claim (`{n}:claims`: owner → permits), and a release removes it. A repeated release therefore
//!    counts once, and permits taken before the semaphore was reset do not count.
//!
//! Next to read: `latch.rs`.

use super::{
    client::RedisClient,
    engine::{HeadOfLine, SharedObject, TryResult, UNDO_LIMIT, fail, run_to_end, undo},
    failure::Failure,
    scripts::{self, prefixed, suffixed},
};
use crate::{LockError, Owner, deadline};
use std::{fmt, sync::Arc, time::Duration};

/// How long the tombstone of an abandoned owner is kept: longer than a command can be on its way.
const TOMBSTONE_TTL: Duration = Duration::from_secs(60);

/// The waiters, and the permits that each asks for.
type SharedSemaphore = SharedObject<(), u32>;

/// A handle on one semaphore in Redis. Cloning it is cheap.
///
/// Source: Redisson's `RSemaphore`.
///
/// # Survives
///
/// A lost message, a dropped caller, a command without an answer, a semaphore that is deleted under its holders.
///
/// # What breaks it
///
/// **A holder that crashes keeps its permits for ever** (Redisson's issue 2045): a semaphore has no lease. `{n}:claims` shows
/// what was lost, and only deleting the semaphore brings it back. If a holder may crash, use `zk::ZkSemaphore`, whose permits
/// come back with the session. A Java process writes no claims, so a permit that it releases twice counts twice.
///
/// # Cost
///
/// One script to acquire and one to release. Of the waiters of a process only the first asks.
///
/// # Format
///
/// Redisson's `RSemaphore`, 3.x and 4.x: STRING `n`, channel `redisson_sc:{n}`; ours alone: HASH `{n}:claims`.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let room = redis.semaphore("semaphore");
/// room.try_set_permits(3).await?;
/// let two = room.acquire(2, Duration::from_secs(5)).await?;
/// two.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisSemaphore {
    client: RedisClient,
    name: String,
    object: Arc<SharedSemaphore>,
    /// The permits to create the semaphore with if it is missing; 0: do not create it.
    initial: u32,
}

/// Held permits. Dropping it releases them in the background.
///
/// ```no_run
/// # use oversell_lock::LockError;
/// # use std::time::Duration;
/// # async fn example(permit: oversell_lock::redis::Permit) -> Result<(), LockError> {
/// println!("{} permits are held", permit.permits());
/// permit.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the permits are given back as soon as this is dropped"]
pub struct Permit {
    semaphore: RedisSemaphore,
    owner: Owner,
    permits: u32,
    held: bool,
}

impl RedisClient {
    /// Makes a handle on the semaphore `name`.
    #[must_use]
    pub fn semaphore(&self, name: &str) -> RedisSemaphore {
        let name = self.key(name);
        let channel = prefixed("redisson_sc", &name);
        RedisSemaphore {
            client: self.clone(),
            object: self.shared(&channel, |place| {
                SharedSemaphore::new(self, &name, channel.clone(), place)
            }),
            name,
            initial: 0,
        }
    }
}

impl RedisSemaphore {
    /// Returns the name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Has each try create the semaphore with `permits` if it is missing: waiters go on after somebody has deleted it.
    #[must_use]
    pub fn initially(self, permits: u32) -> Self {
        Self {
            initial: permits,
            ..self
        }
    }

    /// Creates the semaphore with `permits` permits; `false` if it exists, even with none free.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may be set or not; trying again is safe.
    ///
    /// # Cancel safety
    ///
    /// It may be set or not.
    pub async fn try_set_permits(&self, permits: u32) -> Result<bool, LockError> {
        let mut script = self.client.script(&scripts::SEMAPHORE_SET).key(&self.name);
        script.key(self.claims()).key(self.object.channel());
        Ok(self.client.run(script.arg(permits)).await?)
    }

    /// Returns how many permits are free now; 0 if the semaphore is not set.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn available_permits(&self) -> Result<i64, LockError> {
        self.client.number(&self.name).await
    }

    /// Takes `permits` (at least 1) at once, waiting for them at most `wait`. A semaphore that is not set has none
    /// ([`initially`](Self::initially) sets it).
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] if they were not free for all of `wait`, [`LockError::Unavailable`] if Redis is down or did
    /// not answer, [`LockError::Invalid`] for no permits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: what an unanswered command may have taken is released in the
    /// background.
    pub async fn acquire(&self, permits: u32, wait: Duration) -> Result<Permit, LockError> {
        if permits == 0 {
            return Err(LockError::invalid(
                &self.name,
                "permits: must be at least 1",
            ));
        }
        let until = deadline(wait);
        let attempt = |head| self.clone().attempt(permits, head);
        let acquired = self
            .object
            .wait(&self.client, permits, wait, until, attempt);
        acquired
            .await?
            .ok_or_else(|| LockError::taken(&self.name, wait))
    }

    /// Takes `permits` if they are free now, ahead of any waiter.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, permits: u32) -> Result<Permit, LockError> {
        self.acquire(permits, Duration::ZERO).await
    }

    /// One try. If the caller has gone, the permit is dropped and so released.
    async fn attempt(
        self,
        permits: u32,
        head: HeadOfLine<u32>,
    ) -> Result<TryResult<Permit>, LockError> {
        let owner = self.client.owner();
        let mut script = self
            .client
            .script(&scripts::SEMAPHORE_ACQUIRE)
            .key(&self.name);
        script
            .key(self.claims())
            .key(self.tombstone(owner))
            .key(self.object.channel());
        script.arg(permits).arg(owner.to_string()).arg(self.initial);
        match self.client.run::<Option<u32>>(&script).await {
            Ok(Some(mut free)) => {
                if let Some(head) = head {
                    head.invite(|asks| {
                        let fits = *asks <= free;
                        free -= if fits { *asks } else { 0 };
                        fits
                    });
                }
                Ok(TryResult::Acquired(Permit {
                    semaphore: self,
                    owner,
                    permits,
                    held: true,
                }))
            }
            Ok(None) => Ok(TryResult::RetryWithin(None)),
            Err(failure) => {
                if failure.may_have_run {
                    self.undo(owner, TOMBSTONE_TTL);
                }
                Err(fail(head.as_deref(), failure))
            }
        }
    }

    /// Releases the owner's claim in the background. A tombstone keeps out a command of the owner that arrives later
    /// still.
    fn undo(&self, owner: Owner, mark: Duration) {
        let semaphore = self.clone();
        undo(&self.client, UNDO_LIMIT, Duration::ZERO, (), move || {
            let semaphore = semaphore.clone();
            async move { semaphore.release_claim(owner, mark).await }
        });
    }

    /// `semaphore_release.lua`: whether the owner had a claim.
    async fn release_claim(&self, owner: Owner, mark: Duration) -> Result<bool, Failure> {
        let mut script = self
            .client
            .script(&scripts::SEMAPHORE_RELEASE)
            .key(&self.name);
        script
            .key(self.claims())
            .key(self.tombstone(owner))
            .key(self.object.channel());
        script
            .arg(owner.to_string())
            .arg(u64::try_from(mark.as_millis()).unwrap_or(u64::MAX));
        self.client.run(&script).await
    }

    fn claims(&self) -> String {
        suffixed(&self.name, "claims")
    }

    fn tombstone(&self, owner: Owner) -> String {
        suffixed(&self.name, &format!("gone:{owner}"))
    }
}

impl Permit {
    /// Returns the number of permits.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Releases them and waits for Redis's answer.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the semaphore was deleted in the meantime: the permits are void.
    /// [`LockError::Unavailable`] if Redis did not answer: the release is retried in the background.
    ///
    /// # Cancel safety
    ///
    /// Safe: it continues in the background.
    pub async fn release(mut self) -> Result<(), LockError> {
        self.held = false;
        let (semaphore, owner) = (self.semaphore.clone(), self.owner);
        let release = async move {
            match semaphore.release_claim(owner, Duration::ZERO).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(LockError::lost(semaphore.name)),
                Err(failure) => {
                    if failure.retryable {
                        semaphore.undo(owner, Duration::ZERO);
                    }
                    Err(failure.error)
                }
            }
        };
        run_to_end(&self.semaphore.client, release).await
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.held {
            self.semaphore.undo(self.owner, Duration::ZERO);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("name", &self.semaphore.name)
            .field("permits", &self.permits)
            .finish()
    }
}
