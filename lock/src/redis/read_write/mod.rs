//! The read-write lock of Redisson: many readers together, or one writer alone.
//!
//! 1. A reader or a writer waits in this process's one line ([`crossing`]), in order of arrival; a reader that finds it
//!    empty asks Redis at once.
//! 2. One script takes a hold, or says how long the others' lease runs; then the head of the line sleeps until the
//!    channel's message, the end of that lease, or half a second, whichever comes first, and asks again.
//! 3. A task keeps the hold ([`hold`]): each has a lease of its own, and the lock lasts as long as the longest.
//! 4. An owner that is named ([`RedisReadLock::owner`]) enters again what it has: read in read, write in write, read in
//!    write; giving back the write hold first leaves it reading, and lets other readers in. From read to write there is
//!    no way, for two readers that tried would wait for each other: it is refused at once.
//!
//! What it survives: a holder that dies (its own hold ends, the others' do not), a message that is lost, a caller that
//! goes away at any point, a command without an answer. **What breaks it**: a holder that is paused beyond its lease and
//! then goes on; readers of other processes that never pause keep a writer out for ever (the format has no place for
//! who waits; in one process, readers that come after a writer wait behind it); a Java reader's watchdog, which sets the
//! lease of *every* reader to its own, so that a longer fixed lease of ours ends before we say so; a primary that fails
//! before its replica has the key.
//!
//! Formats: `RReadWriteLock` of Redisson 3 and 4: HASH `n` (`mode`, `<owner>`, `<owner>:write`), a string for each hold,
//! channel `redisson_rwlock:{n}` (`0`: the last reader left, `1`: the writer did). Next to read: `crossing.rs`.

mod crossing;
mod hold;

pub(super) use crossing::Crossings;

use super::{
    client::{RedisClient, unavailable},
    contend::RECHECK,
    lease::Lease,
    station::{Place, to_the_end},
};
use crate::{Guard, Lock, LockError, Owner};
use crossing::Crossing;
use hold::{Claim, Hold, READS, Side};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// A lease is over this long after its last millisecond began.
const OVER: Duration = Duration::from_millis(1);

/// A handle on one read-write lock in Redis. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct RedisRwLock {
    client: RedisClient,
    crossing: Arc<Crossing>,
}

/// The half that any number may hold together, as long as nobody writes.
#[derive(Debug, Clone)]
pub struct RedisReadLock(Half);

/// The half that one owner holds alone.
#[derive(Debug, Clone)]
pub struct RedisWriteLock(Half);

#[derive(Debug, Clone)]
struct Half {
    client: RedisClient,
    crossing: Arc<Crossing>,
    side: Side,
    owner: Option<Owner>,
    lease: Lease,
}

/// What one try came to.
enum Attempt {
    Had(Hold),
    /// Others have it; it may be free after so long.
    Taken(Place, Duration),
}

impl RedisClient {
    /// A handle on the read-write lock `name`. The lease is the client's, renewed while the holder lives.
    #[must_use]
    pub fn rw_lock(&self, name: &str) -> RedisRwLock {
        RedisRwLock { crossing: self.crossings().at(self, name), client: self.clone() }
    }
}

impl RedisRwLock {
    /// The name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.crossing.name
    }

    /// Its read half; each acquire has an owner of its own.
    #[must_use]
    pub fn read(&self) -> RedisReadLock {
        RedisReadLock(self.half(Side::Read))
    }

    /// Its write half; each acquire has an owner of its own.
    #[must_use]
    pub fn write(&self) -> RedisWriteLock {
        RedisWriteLock(self.half(Side::Write))
    }

    fn half(&self, side: Side) -> Half {
        let (client, crossing) = (self.client.clone(), Arc::clone(&self.crossing));
        Half { lease: client.lease(), client, crossing, side, owner: None }
    }
}

impl RedisReadLock {
    /// The same handle, all of whose holds are `owner`'s: it enters again where it reads or writes already.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self(Half { owner: Some(owner), ..self.0 })
    }

    /// The same handle with another lease, of at least 1 ms.
    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        Self(Half { lease, ..self.0 })
    }
}

impl RedisWriteLock {
    /// The same handle, all of whose holds are `owner`'s: it enters again where it writes already. Where it reads,
    /// [`acquire`](Lock::acquire) says [`LockError::Invalid`] at once.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self(Half { owner: Some(owner), ..self.0 })
    }

    /// The same handle with another lease, of at least 1 ms.
    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        Self(Half { lease, ..self.0 })
    }
}

impl Lock for RedisReadLock {
    fn name(&self) -> &str {
        &self.0.crossing.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        self.0.acquire(wait).await
    }
}

impl Lock for RedisWriteLock {
    fn name(&self) -> &str {
        &self.0.crossing.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        self.0.acquire(wait).await
    }
}

impl Half {
    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let until = Instant::now() + wait;
        let owner = self.owner.unwrap_or_else(|| self.client.owner());
        let at_once = wait.is_zero()
            || self.crossing.is_inside(owner)
            || (self.side == Side::Read && self.crossing.nobody_waits());
        let mut had = if at_once { self.beside_the_line(owner).await? } else { None };
        if had.is_none() && !wait.is_zero() {
            had = self.in_line(owner, until).await?;
        }
        let hold = had.ok_or_else(|| LockError::Taken { name: self.crossing.name.clone(), waited: wait })?;
        let (guard, keeper) = Guard::new(self.crossing.name.as_str(), None);
        self.client.spawn(hold.keep(keeper));
        Ok(guard)
    }

    async fn beside_the_line(&self, owner: Owner) -> Result<Option<Hold>, LockError> {
        let Some(beside) = self.crossing.station.turn(owner, Duration::ZERO).await? else { return Ok(None) };
        match self.attempt(owner, beside).await? {
            Attempt::Had(hold) => Ok(Some(hold)),
            Attempt::Taken(..) => Ok(None),
        }
    }

    async fn in_line(&self, owner: Owner, until: Instant) -> Result<Option<Hold>, LockError> {
        let _counted = self.crossing.wait();
        let left = until.saturating_duration_since(Instant::now());
        let mut turn = pin!(self.crossing.station.turn(owner, left));
        let mut place = loop {
            if let Ok(turn) = timeout(RECHECK, turn.as_mut()).await {
                match turn? {
                    Some(place) => break place,
                    None => return Ok(None),
                }
            }
            // Another task of the owner may have got in meanwhile, and the line be waiting for it.
            if self.crossing.is_inside(owner)
                && let Some(hold) = self.beside_the_line(owner).await?
            {
                return Ok(Some(hold));
            }
        };
        loop {
            let free = match self.attempt(owner, place).await? {
                Attempt::Had(hold) => return Ok(Some(hold)),
                Attempt::Taken(given_back, free) => {
                    place = given_back;
                    free
                }
            };
            if !self.crossing.station.pause(until, free).await {
                return Ok(None);
            }
        }
    }

    async fn attempt(&self, owner: Owner, place: Place) -> Result<Attempt, LockError> {
        to_the_end(&self.client, self.clone().ask(owner, place)).await
    }

    /// One try. What it took is dropped, and so given back, where the caller has gone.
    async fn ask(self, owner: Owner, place: Place) -> Result<Attempt, LockError> {
        let (client, crossing) = (self.client.clone(), Arc::clone(&self.crossing));
        let id = match (self.owner, self.side) {
            (Some(_), _) => client.owner().to_string(),
            (None, Side::Read) => "1".to_owned(),
            (None, Side::Write) => String::new(),
        };
        match Hold::take(Claim { client, crossing, side: self.side, owner, id, lease: self.lease }).await {
            Ok(Ok(hold)) => Ok(Attempt::Had(if self.owner.is_some() { hold.known() } else { hold })),
            Ok(Err(READS)) => Err(LockError::Invalid {
                name: self.crossing.name.clone(),
                rule: "its owner reads, and cannot write before it has given the read lock back",
            }),
            Ok(Err(free)) => {
                let free = u64::try_from(free).map_or(Duration::MAX, |ms| Duration::from_millis(ms) + OVER);
                Ok(Attempt::Taken(place, free))
            }
            Err(error) => {
                let error = unavailable(&error);
                place.fail(&error);
                Err(error)
            }
        }
    }
}
