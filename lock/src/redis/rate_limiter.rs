//! A rate limiter: never more than so many admissions in any interval, of all processes or of each.
//!
//! 1. Set the rate, once: [`try_set_rate`](RateLimiter::try_set_rate) leaves a limiter that is there alone.
//! 2. The window slides: each admission is written down with its time, by the server's clock, and counts for one
//!    interval. One script forgets those that are older, counts the rest, and admits or says when the next may be.
//! 3. Who waits does so in this process's line; its head sleeps until then and asks again. Who cannot be admitted within
//!    its wait hears it at once.
//!
//! A token bucket would admit up to twice its rate within one interval (a full bucket, and what flows in meanwhile), a
//! fixed window as many around its border; a sliding window admits the rate and no more, and costs one entry for each
//! admission of the last interval.
//!
//! What it survives: a caller that goes away and a command without an answer (an admission may be spent on nobody; it
//! comes back with the window). **What breaks it**: a Redis whose clock is set forward forgets the window; per client,
//! a process that starts anew has a window of its own.
//!
//! **Not Redisson's format**: `RRateLimiter` packs its entries differently in 3.13.6 and 4.x, and no two lines mix. This
//! one uses keys of its own (HASH `oversell_rate:{n}`, ZSET `oversell_rate:{n}:window`, with `:<process uuid>` per
//! client), so that a Java limiter of the same name is another limiter.

use super::{
    client::{RedisClient, unavailable},
    script::prefixed,
    station::{Place, Station},
};
use crate::LockError;
use redis::Script;
use std::{
    num::NonZeroU32,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::time::{Instant, sleep};

static SET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/rate_set.lua")));
static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/rate_take.lua")));

const ADMITTED: i64 = 0;
const NOT_SET: i64 = -1;
const MORE_THAN_THE_RATE: i64 = -2;

/// Whose admissions count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateMode {
    /// Those of all processes.
    Overall,
    /// Those of each process ([`RedisOptions::process`](super::RedisOptions)) for itself.
    PerClient,
}

/// A handle on one rate limiter in Redis. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct RateLimiter {
    client: RedisClient,
    name: String,
    key: String,
    process: String,
    station: Arc<Station>,
}

impl RedisClient {
    /// A handle on the rate limiter `name`.
    #[must_use]
    pub fn rate_limiter(&self, name: &str) -> RateLimiter {
        let name = self.stations().key(name);
        let key = prefixed("oversell_rate", &name);
        // Nothing is told on it: it is the name of the line.
        let station = self.stations().at(key.clone());
        RateLimiter { client: self.clone(), process: self.stations().process().to_string(), name, key, station }
    }
}

impl RateLimiter {
    /// The name, with the prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the rate: so many in any `interval` (from 1 ms, in whole ms); `false` where one is set already.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] for an interval below 1 ms. [`LockError::Unavailable`]: it may be set or not; asking again
    /// is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping it, it may be set or not.
    pub async fn try_set_rate(&self, mode: RateMode, rate: NonZeroU32, interval: Duration) -> Result<bool, LockError> {
        let ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        if ms == 0 {
            return Err(self.invalid("an interval of at least 1 ms"));
        }
        let mut script = SET.key(&self.key);
        script.arg(rate.get()).arg(ms).arg(i32::from(mode == RateMode::PerClient));
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
    }

    /// Admits `n` at once (1 to the rate), waiting for it at most `wait`.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] where they cannot be admitted within `wait`, which is told as soon as it is certain.
    /// [`LockError::Invalid`] where no rate is set, or `n` is more than it. [`LockError::Unavailable`] where Redis is
    /// down or did not answer: they may be spent.
    ///
    /// # Cancel safety
    ///
    /// Dropping it, an admission may be spent; more than the rate are never admitted.
    pub async fn acquire(&self, n: NonZeroU32, wait: Duration) -> Result<(), LockError> {
        let started = Instant::now();
        let admitted = match self.station.turn(self.client.owner(), wait).await? {
            Some(place) => self.contend(n, place, started + wait).await?,
            None => false,
        };
        if admitted { Ok(()) } else { Err(LockError::Taken { name: self.name.clone(), waited: started.elapsed() }) }
    }

    /// Admits `n` if they may pass now, whoever waits; whether it did.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), without [`LockError::Taken`].
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, n: NonZeroU32) -> Result<bool, LockError> {
        match self.acquire(n, Duration::ZERO).await {
            Ok(()) => Ok(true),
            Err(LockError::Taken { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn contend(&self, n: NonZeroU32, place: Place, until: Instant) -> Result<bool, LockError> {
        loop {
            let after = match self.take(n).await {
                Ok(ADMITTED) => return Ok(true),
                Ok(NOT_SET) => return Err(self.invalid("no rate is set")),
                Ok(MORE_THAN_THE_RATE) => return Err(self.invalid("at most the rate at once")),
                Ok(after) => Duration::from_micros(after.unsigned_abs()),
                Err(error) => {
                    place.fail(&error);
                    return Err(error);
                }
            };
            if Instant::now() + after > until {
                return Ok(false);
            }
            sleep(after).await;
        }
    }

    /// `rate_take.lua`.
    async fn take(&self, n: NonZeroU32) -> Result<i64, LockError> {
        let all = format!("{}:window", self.key);
        let mut script = TAKE.key(&self.key);
        script.key(&all).key(format!("{all}:{}", self.process)).arg(n.get()).arg(self.client.owner().to_string());
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
    }

    fn invalid(&self, rule: &'static str) -> LockError {
        LockError::Invalid { name: self.name.clone(), rule }
    }
}
