//! What the rate limiter promises, and the twin whose window does not slide.

use crate::support::*;
use oversell_lock::redis::RedisClient;
use std::{cell::RefCell, num::NonZeroU32, time::Instant};

const INTERVAL: Duration = Duration::from_millis(400);
const RATE: usize = 10;
const ONE: NonZeroU32 = NonZeroU32::MIN;
const TEN: NonZeroU32 = NonZeroU32::new(10).expect("ten");

/// The earliest and latest time at which one was admitted.
type AdmissionTimes = (Instant, Instant);

/// Admissions that surely lie within one interval.
fn most_in_a_window(mut admitted: Vec<AdmissionTimes>) -> usize {
    admitted.sort_by_key(|a| a.1);
    let within = |last: usize| {
        let in_time = |a: &&AdmissionTimes| admitted[last].1.duration_since(a.0) < INTERVAL;
        admitted[..=last].iter().filter(in_time).count()
    };
    (0..admitted.len()).map(within).max().unwrap_or(0)
}

/// Six processes with five clients each ask as fast as they can, until three times the rate were admitted.
async fn storm(redis: &Redis, name: &str, ask: impl AsyncFn(&RedisClient, &str) -> Result<bool>) -> Result<Vec<AdmissionTimes>> {
    let (processes, ends) = (redis.clients(6).await, Instant::now() + 6 * INTERVAL);
    let admitted = RefCell::new(Vec::new());
    try_join_all((0..30).map(async |client| {
        while Instant::now() < ends || admitted.borrow().len() < 3 * RATE {
            let sent = Instant::now();
            if ask(&processes[client % 6], name).await? {
                admitted.borrow_mut().push((sent, Instant::now()));
            }
        }
        anyhow::Ok(())
    }))
    .await?;
    Ok(admitted.into_inner())
}

#[apply(test!)]
async fn no_window_admits_more_than_the_rate(redis: &Redis) -> Result {
    let name = name();
    let limiter = redis.client().await.rate_limiter(&name);
    ensure!(limiter.try_set_rate(TEN, INTERVAL).await?, "not set");
    ensure!(!limiter.try_set_rate(ONE, INTERVAL).await?, "set twice");
    let ask = async |process: &RedisClient, name: &str| Ok(process.rate_limiter(name).try_acquire(ONE).await?);
    let admitted = storm(redis, &name, ask).await?;
    let (all, most) = (admitted.len(), most_in_a_window(admitted));
    ensure!(most <= RATE, "{most} within one interval");
    ensure!(all > 2 * RATE, "only {all} were admitted at all");
    Ok(())
}

/// The twin uses fixed windows.
#[apply(test!)]
async fn a_fixed_window_is_caught(redis: &Redis) -> Result {
    let name = name();
    // Ten at the end of one window and ten at the start of the next, as a crowd at the border would come.
    let ask = async |process: &RedisClient, name: &str| {
        let script = "local t = redis.call('time') local ms = t[1] * 1000 + math.floor(t[2] / 1000)
            if ms % 400 > 100 and ms % 400 < 300 then return 0 end
            local key = KEYS[1] .. math.floor(ms / 400)
            redis.call('pexpire', key, 800)
            if redis.call('incr', key) <= 10 then return 1 end
            return 0";
        let script = redis::Script::new(script);
        let mut redis = process.connection();
        Ok(script.key(name).invoke_async(&mut redis).await?)
    };
    // The twin's window fills at its start, so the storm needs one more window to show an end.
    for _ in 0..10 {
        if most_in_a_window(storm(redis, &name, &ask).await?) > RATE {
            return Ok(());
        }
    }
    bail!("the twin passed")
}

#[apply(test!)]
async fn a_request_that_cannot_be_admitted_in_time_hears_it_at_once(redis: &Redis) -> Result {
    // It must outlast the second call.
    let interval = SOON / 4;
    let (name, process) = (name(), redis.client().await);
    let limiter = process.rate_limiter(&name);
    let endless = limiter.try_set_rate(ONE, Duration::MAX).await;
    ensure_invalid("an interval without end", endless)?;
    ensure_none(redis.keys(&name).await)?;
    ensure_invalid("without a rate", limiter.try_acquire(ONE).await)?;
    limiter.try_set_rate(ONE, interval).await?;
    ensure_invalid("ten at once", limiter.acquire(TEN, SOON).await)?;
    limiter.acquire(ONE, SOON).await?;
    ensure_taken("within a quarter", limiter.acquire(ONE, interval / 4).await)?;
    let after = limiter.acquire(ONE, FOR_EVER).await;
    after.context("after the interval")
}

/// Redis would stand still for as long as it writes an entry for each.
#[apply(test!)]
async fn more_than_redis_can_write_at_once_is_refused(redis: &Redis) -> Result {
    let (most, above) = const { (NonZeroU32::new(10_000).unwrap(), NonZeroU32::new(10_001).unwrap()) };
    let (name, process) = (name(), redis.client().await);
    let limiter = process.rate_limiter(&name);
    limiter.try_set_rate(NonZeroU32::MAX, SOON).await?;
    ensure_invalid("one too many", limiter.acquire(above, SOON).await)?;
    ensure_invalid("one too many", limiter.try_acquire(above).await)?;
    Ok(limiter.acquire(most, SOON).await?)
}
