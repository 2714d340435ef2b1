//! Readers together, a writer alone: two handles on one lock.
//!
//! 1. Wait in this process's one line, in order of arrival. A reader that is in lets the next one try at once, so
//!    readers go in one after the other and are inside together. A writer keeps the head until it is out; whoever came
//!    after it waits, readers too: in one process no writer starves. Between processes it can, as with Redisson: readers
//!    go in as long as there are readers.
//! 2. Try: one script. An owner that is given is tried first past the line, for it may be inside already: it may read
//!    again, write again, and read what it writes. It may not write while it reads: that is refused at once, because two
//!    such readers would wait for each other.
//! 3. Refused: subscribe, try again, then wait for the message, the end of the lease, or the timed re-check.
//! 4. Had: a task keeps it. Every read hold ends by itself, and the lock with the longest of them ([`hold`]).
//!
//! What it survives: readers and writers that die (their leases end), a caller that goes away at any point, a message
//! that is lost, a command that gets no answer. **What breaks it**: a holder that is paused beyond its lease; a primary
//! that fails before its replica has the key.
//!
//! Formats: `RReadWriteLock` of Redisson 3 and 4. When a writer that also reads stops writing, Redisson tells nobody and
//! other readers find out by their re-check; this one tells them. Next to read: `hold.rs`.

mod hold;

use super::{
    client::RedisClient,
    lease::{self, Lease},
    script,
    station::{Place, Station, to_the_end},
    tally::Tally,
};
use crate::{Guard, Lock, LockError, Owner};
use hold::{Hold, Tried, undo};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

const UPGRADE: &str =
    "its owner reads, and cannot write before it has stopped: two such readers would wait for each other";

/// What a hold is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Read,
    Write,
}

/// What all handles of one lock share in this process.
#[derive(Debug)]
pub(super) struct Shared {
    client: RedisClient,
    station: Arc<Station>,
    key: String,
}

/// A read-write lock; see [`RedisClient::rw_lock`].
#[derive(Debug, Clone)]
pub struct RedisRwLock(Arc<Shared>);

/// A handle that reads, together with others. Each acquire is an owner of its own, unless it is given one.
#[derive(Debug, Clone)]
pub struct RedisReadLock(Half);

/// A handle that writes, alone. Each acquire is an owner of its own, unless it is given one.
#[derive(Debug, Clone)]
pub struct RedisWriteLock(Half);

#[derive(Debug, Clone)]
struct Half {
    shared: Arc<Shared>,
    mode: Mode,
    owner: Option<Owner>,
    lease: Lease,
}

impl RedisClient {
    /// The read-write lock `name`.
    #[must_use]
    pub fn rw_lock(&self, name: &str) -> RedisRwLock {
        let key = self.stations().key(name);
        let station = self.stations().at(script::rw_channel(&key));
        RedisRwLock(Arc::new(Shared { client: self.clone(), station, key }))
    }
}

impl RedisRwLock {
    /// A handle that reads.
    #[must_use]
    pub fn read(&self) -> RedisReadLock {
        RedisReadLock(self.half(Mode::Read))
    }

    /// A handle that writes.
    #[must_use]
    pub fn write(&self) -> RedisWriteLock {
        RedisWriteLock(self.half(Mode::Write))
    }

    fn half(&self, mode: Mode) -> Half {
        Half { shared: Arc::clone(&self.0), mode, owner: None, lease: self.0.client.lease() }
    }
}

macro_rules! handle {
    ($handle:ident) => {
        impl $handle {
            /// Takes it as `owner`, which may hold it several times, and read what it writes. An owner belongs to one
            /// client ([`RedisClient::owner`]).
            #[must_use]
            pub fn owner(mut self, owner: Owner) -> Self {
                self.0.owner = Some(owner);
                self
            }

            /// Takes it for `lease`. Without this it is the client's, renewed every third.
            #[must_use]
            pub fn lease(mut self, lease: Lease) -> Self {
                self.0.lease = lease;
                self
            }
        }

        impl Lock for $handle {
            fn name(&self) -> &str {
                &self.0.shared.key
            }

            async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
                self.0.acquire(wait).await
            }
        }
    };
}

handle!(RedisReadLock);
handle!(RedisWriteLock);

impl Half {
    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (until, client) = (Instant::now() + wait, &self.shared.client);
        let owner = self.owner.unwrap_or_else(|| client.owner());
        self.tally().may_ask(owner)?;
        if self.owner.is_some()
            && let Attempt::Had(hold) = self.attempt(owner, None).await?
        {
            return Ok(self.guarded(hold));
        }
        let taken = || LockError::Taken { name: self.shared.key.clone(), waited: wait };
        let left = until.saturating_duration_since(Instant::now());
        let mut place = Some(self.shared.station.turn(owner, left).await?.ok_or_else(taken)?);
        loop {
            let lease = match self.attempt(owner, place).await? {
                Attempt::Had(hold) => return Ok(self.guarded(hold)),
                Attempt::Refused(given_back, lease) => {
                    place = given_back;
                    lease
                }
            };
            if !self.shared.station.pause(until, lease.unwrap_or(Duration::MAX)).await {
                return Err(taken());
            }
        }
    }

    /// One try, in a task of its own: it runs to its end even if the caller goes away, and what it took is then
    /// dropped, which gives it back.
    async fn attempt(&self, owner: Owner, place: Option<Place>) -> Result<Attempt, LockError> {
        let (shared, mode, lease) = (Arc::clone(&self.shared), self.mode, self.lease);
        to_the_end(&self.shared.client, async move {
            let leased = Instant::now();
            match shared.acquire(mode, owner, lease).await {
                // A reader that is in lets the next one try.
                Ok(Tried::Taken) => {
                    let place = place.filter(|_| mode == Mode::Write);
                    Ok(Attempt::Had(Hold::new(shared, mode, owner, lease, leased, place)))
                }
                Ok(Tried::Refused(lease)) => Ok(Attempt::Refused(place, lease)),
                Ok(Tried::Upgrade) => Err(LockError::Invalid { name: shared.key.clone(), rule: UPGRADE }),
                Err(error) => {
                    if shared.station.tally().doubt(owner, mode) {
                        undo(&shared, mode, owner, lease);
                    }
                    if let Some(place) = place {
                        place.fail(&error);
                    }
                    Err(error)
                }
            }
        })
        .await
    }

    fn guarded(&self, hold: Hold) -> Guard {
        let (guard, keeper) = Guard::new(self.shared.key.as_str(), None);
        let leased = hold.leased();
        self.shared.client.spawn(lease::keep(hold, self.lease, leased, keeper));
        guard
    }

    fn tally(&self) -> &Tally<Mode> {
        self.shared.station.tally()
    }
}

/// What one try came to.
enum Attempt {
    Had(Hold),
    /// Others are inside; their lease runs for so long, or for ever.
    Refused(Option<Place>, Option<Duration>),
}
