//! The count-down latch of Redisson: a count, and a channel that tells when it has come to zero.
//!
//! 1. Set the count, once: [`try_set_count`](RedisLatch::try_set_count) leaves one that is there alone.
//! 2. Each [`count_down`](RedisLatch::count_down) takes one off; the last deletes the key, and so opens the latch.
//! 3. Who waits looks at the count, then waits for the channel or half a second, and looks again. In this process only
//!    the head of the line does so; the others look when their turn comes.
//! 4. The latch may be set anew at once, before those who waited have looked: so each opening is counted beside it
//!    (`{n}:opened`), and who finds that number changed goes on.
//!
//! What it survives: a message that is lost, a waiter that goes away, a latch that is set anew under its waiters.
//! **What breaks it**: one who crashes before it counts down: all wait for ever, unless they set a limit. A count-down
//! that gets no answer may have counted, and must not be repeated blindly. A latch that is deleted is open, to those
//! who wait as well. Where a Java process counts the last one down, no opening is counted: waiters that miss its message
//! and find the latch set anew wait for the next one, as Redisson's do.
//!
//! Formats: `RCountDownLatch` of Redisson 3 and 4 (STRING `n`, channel `redisson_countdownlatch__channel__{n}`). Next to
//! read: `rate_limiter.rs`.

use super::{
    client::{RedisClient, unavailable},
    semaphore::suffixed,
    station::{Place, Station},
};
use crate::LockError;
use redis::{AsyncCommands, Script};
use std::{
    num::NonZeroU32,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::time::Instant;

static SET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/latch_set.lua")));
static COUNT_DOWN: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/latch_count_down.lua")));

/// A handle on one latch in Redis. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct RedisLatch {
    client: RedisClient,
    name: String,
    station: Arc<Station>,
}

/// What a waiter sees.
#[derive(Debug, Clone, Copy)]
struct Look {
    closed: bool,
    /// How often it was opened so far.
    opened: u64,
}

impl RedisClient {
    /// A handle on the latch `name`.
    #[must_use]
    pub fn latch(&self, name: &str) -> RedisLatch {
        let name = self.stations().key(name);
        // Braces always, even where the name has some.
        let station = self.stations().at(format!("redisson_countdownlatch__channel__{{{name}}}"));
        RedisLatch { client: self.clone(), name, station }
    }
}

impl RedisLatch {
    /// The name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes the latch until `count` have counted down; `false` where it is closed already.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may be set or not; asking again is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping it, it may be set or not.
    pub async fn try_set_count(&self, count: NonZeroU32) -> Result<bool, LockError> {
        let mut script = SET.key(&self.name);
        script.key(self.station.channel()).arg(count.get());
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
    }

    /// Counts down by one: how many are left, 0 for who opens it, or `None` where it is open already.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may have counted or not, and nothing can undo it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it, it may have counted or not.
    pub async fn count_down(&self) -> Result<Option<u64>, LockError> {
        let mut script = COUNT_DOWN.key(&self.name);
        script.key(suffixed(&self.name, "opened")).key(self.station.channel());
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
    }

    /// How many must still count down; 0 where it is open.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn get_count(&self) -> Result<u64, LockError> {
        let count: Option<u64> = self.client.connection().get(&self.name).await.map_err(|e| unavailable(&e))?;
        Ok(count.unwrap_or(0))
    }

    /// Waits until the latch is open, at most `limit`. One that is not set is open.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] where it stayed closed for all of `limit`, [`LockError::Unavailable`] where Redis is down.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only looks.
    pub async fn wait(&self, limit: Duration) -> Result<(), LockError> {
        let until = Instant::now() + limit;
        let first = self.look().await?;
        if !first.closed {
            return Ok(());
        }
        let open = match self.station.turn(self.client.owner(), limit).await? {
            Some(place) => self.watch(first, place, until).await?,
            None => false,
        };
        if open { Ok(()) } else { Err(LockError::Taken { name: self.name.clone(), waited: limit }) }
    }

    /// Looks, at the head of this process's line.
    async fn watch(&self, first: Look, place: Place, until: Instant) -> Result<bool, LockError> {
        loop {
            match self.look().await {
                Ok(Look { closed: true, opened }) if opened == first.opened => {}
                // The next looks for itself: it may wait for a later opening than this one.
                Ok(_) => return Ok(true),
                Err(error) => {
                    place.fail(&error);
                    return Err(error);
                }
            }
            if !self.station.pause(until, Duration::MAX).await {
                return Ok(false);
            }
        }
    }

    async fn look(&self) -> Result<Look, LockError> {
        let keys = [self.name.clone(), suffixed(&self.name, "opened")];
        let (count, opened): (Option<i64>, Option<u64>) =
            self.client.connection().mget(&keys).await.map_err(|e| unavailable(&e))?;
        Ok(Look { closed: count.is_some_and(|left| left > 0), opened: opened.unwrap_or(0) })
    }
}
