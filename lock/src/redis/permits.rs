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
//! Formats: `RPermitExpirableSemaphore` of Redisson (STRING `n`, ZSET `{n}:timeout`, channel `redisson_sc:{n}`). An id is
//! 16 raw bytes as in 4.x; 3.13.6 writes 32 hex characters ([`hex_ids`](Permits::hex_ids)). Next to read: `latch.rs`.

use super::{
    client::{RedisClient, unavailable},
    lease::{self, Held, Lease},
    script::prefixed,
    semaphore::{SET, suffixed},
    station::{Place, Station, insist, to_the_end},
};
use crate::{Guard, LockError};
use redis::{AsyncCommands, RedisError, Script};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::time::Instant;
use uuid::Uuid;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/permits_acquire.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/permits_release.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/permits_renew.lua")));

/// A lease is over this long after its last millisecond began.
const OVER: Duration = Duration::from_millis(1);

/// A handle on one semaphore whose permits expire. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Permits {
    client: RedisClient,
    name: String,
    station: Arc<Station>,
    lease: Lease,
    hex: bool,
}

/// A permit that this process has. Dropping it gives it back in the background.
struct Leased {
    permits: Permits,
    id: Vec<u8>,
    /// When the command was sent that took it.
    since: Instant,
    held: bool,
}

/// What one try came to.
enum Attempt {
    Had(Leased),
    /// The next one may be free after so long.
    Taken(Place, Duration),
}

impl RedisClient {
    /// A handle on the semaphore `name`, whose permits expire. The lease is the client's, renewed while the holder lives.
    #[must_use]
    pub fn permits(&self, name: &str) -> Permits {
        let name = self.stations().key(name);
        let station = self.stations().at(prefixed("redisson_sc", &name));
        Permits { client: self.clone(), name, station, lease: self.lease(), hex: false }
    }
}

impl Permits {
    /// The same handle with another lease, of at least 1 ms.
    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        Self { lease, ..self }
    }

    /// The same handle with ids as Redisson 3.13.6 writes them: 32 hex characters instead of 16 bytes. All processes of
    /// one semaphore should write the same.
    #[must_use]
    pub fn hex_ids(self) -> Self {
        Self { hex: true, ..self }
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
        let mut script = SET.key(&self.name);
        script.key(self.leases()).key(self.station.channel()).arg(permits);
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
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
        let free: Option<i64> = self.client.connection().get(&self.name).await.map_err(|e| unavailable(&e))?;
        Ok(free.unwrap_or(0))
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
        let until = Instant::now() + wait;
        let had = match self.station.turn(self.client.owner(), wait).await? {
            Some(place) => self.contend(place, until).await?,
            None => None,
        };
        let leased = had.ok_or_else(|| LockError::Taken { name: self.name.clone(), waited: wait })?;
        let (guard, keeper) = Guard::new(self.name.as_str(), None);
        let (lease, since) = (self.lease, leased.since);
        self.client.spawn(lease::keep(leased, lease, since, keeper));
        Ok(guard)
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

    async fn contend(&self, mut place: Place, until: Instant) -> Result<Option<Leased>, LockError> {
        loop {
            let free = match to_the_end(&self.client, self.clone().attempt(place)).await? {
                Attempt::Had(leased) => return Ok(Some(leased)),
                Attempt::Taken(given_back, free) => {
                    place = given_back;
                    free
                }
            };
            if !self.station.pause(until, free).await {
                return Ok(None);
            }
        }
    }

    /// One try. What it took is dropped, and so given back, where the caller has gone.
    async fn attempt(self, place: Place) -> Result<Attempt, LockError> {
        let id = if self.hex {
            Uuid::new_v4().simple().to_string().into_bytes()
        } else {
            Uuid::new_v4().into_bytes().to_vec()
        };
        let since = Instant::now();
        let mut script = ACQUIRE.key(&self.name);
        script.key(self.leases()).key(self.station.channel()).arg(&id).arg(self.lease.millis());
        let taken: Result<Option<i64>, RedisError> = script.invoke_async(&mut self.client.connection()).await;
        let maybe = Leased { permits: self, id, since, held: true };
        match taken {
            Ok(None) => Ok(Attempt::Had(maybe)),
            Ok(Some(free)) => {
                maybe.was_not_taken();
                let free = u64::try_from(free).map_or(Duration::MAX, |ms| Duration::from_millis(ms) + OVER);
                Ok(Attempt::Taken(place, free))
            }
            Err(error) => {
                if error.is_connection_refusal() {
                    maybe.was_not_taken();
                } else {
                    drop(maybe);
                }
                let error = unavailable(&error);
                place.fail(&error);
                Err(error)
            }
        }
    }

    fn leases(&self) -> String {
        suffixed(&self.name, "timeout")
    }

    /// `permits_release.lua`: whether it was still held.
    async fn give_back(&self, id: &[u8]) -> Result<bool, RedisError> {
        let mut script = RELEASE.key(&self.name);
        script.key(self.leases()).key(self.station.channel()).arg(id);
        script.invoke_async(&mut self.client.connection()).await
    }
}

impl Leased {
    /// Nothing was taken: there is nothing to give back.
    fn was_not_taken(mut self) {
        self.held = false;
    }
}

impl Held for Leased {
    fn name(&self) -> &str {
        &self.permits.name
    }

    async fn renew(&self) -> Result<bool, LockError> {
        let mut script = RENEW.key(self.permits.leases());
        script.arg(&self.id).arg(self.permits.lease.millis());
        script.invoke_async(&mut self.permits.client.connection()).await.map_err(|e| unavailable(&e))
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        match self.permits.give_back(&self.id).await {
            Ok(given_back) => {
                self.held = false;
                if given_back { Ok(()) } else { Err(LockError::Lost { name: self.permits.name.clone() }) }
            }
            // Dropping it tries again.
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if self.held && tokio::runtime::Handle::try_current().is_ok() {
            let (permits, id) = (self.permits.clone(), std::mem::take(&mut self.id));
            self.permits.client.spawn(async move { insist(|| permits.give_back(&id)).await });
        }
    }
}
