//! A rate limiter: at most a given number of admissions in any interval, over all processes.
//!
//! 1. [`try_set_rate`](RateLimiter::try_set_rate) sets the rate once.
//! 2. The window slides: each admission is stored with the server's time and counts for one interval. One script drops the
//!    older ones, counts the rest, and admits or returns when the next may be admitted.
//! 3. Waiters stand in this process's line; its head sleeps until then, half a second at most, and asks again. A head that
//!    cannot be admitted within its wait is told at once.

use super::{
    client::RedisClient,
    engine::{HeadOfLine, SharedObject, TryResult, result_after_failure},
    keys::prefixed,
    scripts,
};
use crate::{LockError, MAX_DURATION, deadline};
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio::time::Instant;

/// The most that one call may ask for, or it is refused; a rate may be higher. Each is an entry, and Redis does nothing else
/// while one script writes them, about 30 ms for this many.
pub const MAX_ADMISSIONS_PER_CALL: NonZeroU32 = NonZeroU32::new(10_000).unwrap();

/// The answer of `rate_take.lua`: admitted, refused because no rate is set or it is less than was asked for, or the time to wait.
enum TakeReply {
    Admitted,
    NoRate,
    MoreThanTheRate,
    /// The caller can be admitted after this time.
    Wait(Duration),
}

impl TakeReply {
    /// Reads the script's return code; a positive one is a wait in microseconds.
    fn of(code: i64) -> Self {
        match code {
            0 => Self::Admitted,
            -1 => Self::NoRate,
            -2 => Self::MoreThanTheRate,
            micros => Self::Wait(Duration::from_micros(micros.unsigned_abs())),
        }
    }
}

/// A handle on one rate limiter in Redis. Cloning it is cheap.
///
/// Source: Redisson's `RRateLimiter`, whose format it does not share.
///
/// # Survives
///
/// A caller that goes away and a command without an answer: an admission may be wasted, and comes back with the window.
///
/// # What breaks it
///
/// A Redis clock that is set forward forgets the window.
///
/// # Cost
///
/// One script for each try, and one entry for each admission of the last interval: a rate of a million fills a set with a million
/// entries, and the script that drops them stops Redis for a second or more. One call admits at most [`MAX_ADMISSIONS_PER_CALL`].
/// A token bucket or a fixed window is cheaper, but may admit twice the rate within one interval; a sliding window never does.
///
/// # Format
///
/// **Not Redisson's**: `RRateLimiter` packs its entries differently in 3.13.6 and 4.x, and its versions do not mix. This one
/// uses HASH `oversell_rate:{n}` and ZSET `oversell_rate:{n}:window`; a Java limiter of the same name is another limiter.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// use std::num::NonZeroU32;
///
/// let (one, ten) = const { (NonZeroU32::MIN, NonZeroU32::new(10).unwrap()) };
/// let limiter = redis.rate_limiter("limited");
/// limiter.try_set_rate(ten, Duration::from_secs(1)).await?;
/// if limiter.try_acquire(one).await? { /* within the rate */ }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RateLimiter {
    client: RedisClient,
    name: Arc<str>,
    key: Arc<str>,
    object: Arc<SharedObject>,
}

impl RedisClient {
    /// Makes a handle on the rate limiter `name`.
    #[must_use]
    pub fn rate_limiter(&self, name: &str) -> RateLimiter {
        let name = self.key(name);
        let key = prefixed("oversell_rate", &name).into();
        let object = self.shared(&key, |registration| SharedObject::without_channel(self, &key, registration));
        RateLimiter { client: self.clone(), name, key, object }
    }
}

impl RateLimiter {
    /// Returns the name, with the prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the rate: at most `rate` in any `interval` (1 ms to ten years, in whole ms); `false` if one is set, which stays.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] for another interval. [`LockError::Unavailable`]: it may be set or not; trying again is safe.
    /// [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may be set or not.
    pub async fn try_set_rate(&self, rate: NonZeroU32, interval: Duration) -> Result<bool, LockError> {
        self.client.check_name(&self.name)?;
        if !(Duration::from_millis(1)..=MAX_DURATION).contains(&interval) {
            return Err(self.invalid_error("its interval must be 1 ms to ten years"));
        }
        let ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let script = scripts::RATE_SET.call([&*self.key]).arg(rate).arg(ms);
        Ok(self.client.run_script(&script).await?)
    }

    /// Admits `n` at once (1 to the rate, and at most [`MAX_ADMISSIONS_PER_CALL`]), waiting for it at most `wait`.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] if they cannot be admitted within `wait`, as soon as Redis says so or the wait is over.
    /// [`LockError::Invalid`] if no rate is set, or `n` exceeds it or [`MAX_ADMISSIONS_PER_CALL`]. [`LockError::Unavailable`] if
    /// Redis is down or did not answer: they may be spent. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// An admission may be spent; more than the rate is never admitted.
    pub async fn acquire(&self, n: NonZeroU32, wait: Duration) -> Result<(), LockError> {
        self.client.check_name(&self.name)?;
        if n > MAX_ADMISSIONS_PER_CALL {
            return Err(self.invalid_error("permits: at most 10,000 at once, or Redis stops for too long"));
        }
        let (started, until) = (Instant::now(), deadline(wait));
        let attempt = |head| self.clone().attempt(n, head, until);
        let admitted = self.object.wait_and_try(&self.client, (), wait, until, attempt);
        let admitted = self.client.while_open(admitted).await?;
        if admitted == Some(true) {
            return Ok(());
        }
        Err(LockError::taken(&*self.name, started.elapsed()))
    }

    /// Admits `n` if possible now, ahead of any waiter; returns whether it did.
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

    /// Runs `rate_take.lua`; `Acquired(false)` if the caller cannot be admitted before `until`.
    async fn attempt(self, n: NonZeroU32, head: HeadOfLine, until: Instant) -> Result<TryResult<bool>, LockError> {
        let window = format!("{}:window", self.key);
        let script = scripts::RATE_TAKE.call([&*self.key, &window]);
        let script = script.arg(n).arg(self.client.owner());
        let code = match self.client.run_script(&script).await {
            Ok(code) => code,
            Err(failure) => return result_after_failure(&self.client, head.as_deref(), failure),
        };
        let after = match TakeReply::of(code) {
            TakeReply::Admitted => return Ok(TryResult::Acquired(true)),
            TakeReply::NoRate => return Err(self.invalid_error("no rate is set")),
            TakeReply::MoreThanTheRate => {
                return Err(self.invalid_error("permits: more than the rate gives in one interval"));
            }
            TakeReply::Wait(after) => after,
        };
        Ok(if Instant::now() + after > until { TryResult::Acquired(false) } else { TryResult::RetryWithin(Some(after)) })
    }

    fn invalid_error(&self, rule: &'static str) -> LockError {
        LockError::invalid(&*self.name, rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::RedisOptions;

    /// Nothing listens there: what is refused has not been sent.
    #[tokio::test]
    async fn too_many_admissions_at_once_are_refused() {
        let redis = RedisClient::new(RedisOptions::new("redis://127.0.0.1:1")).expect("options");
        let limiter = redis.rate_limiter("limited");
        let too_many = MAX_ADMISSIONS_PER_CALL.saturating_add(1);
        let refused = limiter.try_acquire(too_many).await;
        assert!(matches!(refused, Err(LockError::Invalid { .. })), "{refused:?}");
        let sent = limiter.try_acquire(MAX_ADMISSIONS_PER_CALL).await;
        assert!(matches!(sent, Err(LockError::Unavailable { .. })), "{sent:?}");
    }
}
