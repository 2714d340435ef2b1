//! What the rate limiter promises, and the twin whose window does not slide.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name},
    redis::Redis,
};
use oversell_lock::{LockError, redis::RedisClient};
use std::{
    future::Future,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

const INTERVAL: Duration = Duration::from_millis(400);
const RATE: usize = 10;
const ONE: NonZeroU32 = NonZeroU32::MIN;
const TEN: NonZeroU32 = NonZeroU32::new(10).expect("ten");

/// When one was admitted, as surely as its client can tell: after the first, before the second.
type Admitted = (Instant, Instant);

/// Admissions that surely lie within one interval: from the first's sending to the last's answer.
fn most_in_a_window(mut admitted: Vec<Admitted>) -> usize {
    admitted.sort_by_key(|a| a.1);
    let within = |last: usize| {
        let end = admitted[last].1;
        admitted[..=last]
            .iter()
            .filter(|a| end.duration_since(a.0) < INTERVAL)
            .count()
    };
    (0..admitted.len()).map(within).max().unwrap_or(0)
}

/// Six processes of five clients ask for a while as fast as they can, and until three times the rate were admitted.
async fn storm<F>(
    redis: &Redis,
    name: &str,
    ask: fn(Arc<RedisClient>, String) -> F,
) -> Result<Vec<Admitted>, String>
where
    F: Future<Output = Result<bool, String>> + Send + 'static,
{
    let (mut clients, ends) = (JoinSet::new(), Instant::now() + 6 * INTERVAL);
    let so_far = Arc::new(AtomicUsize::new(0));
    for _ in 0..6 {
        let process = Arc::new(redis.process().await);
        for _ in 0..5 {
            let (process, name, so_far) = (process.clone(), name.to_owned(), so_far.clone());
            clients.spawn(async move {
                let mut admitted = Vec::new();
                while Instant::now() < ends || so_far.load(SeqCst) < 3 * RATE {
                    let sent = Instant::now();
                    if ask(process.clone(), name.clone()).await? {
                        admitted.push((sent, Instant::now()));
                        so_far.fetch_add(1, SeqCst);
                    }
                }
                Ok::<_, String>(admitted)
            });
        }
    }
    clients
        .join_all()
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map(|all| all.concat())
}

pub(crate) async fn no_window_admits_more_than_the_rate(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let limiter = redis.process().await.rate_limiter(&name);
    ensure(
        says("set", limiter.try_set_rate(TEN, INTERVAL).await)?,
        || "not set".into(),
    )?;
    ensure(
        !says("set", limiter.try_set_rate(ONE, INTERVAL).await)?,
        || "set twice".into(),
    )?;
    let admitted = storm(&redis, &name, |process, name| async move {
        says("ask", process.rate_limiter(&name).try_acquire(ONE).await)
    })
    .await?;
    let (all, most) = (admitted.len(), most_in_a_window(admitted));
    ensure(most <= RATE, || format!("{most} within one interval"))?;
    ensure(all > 2 * RATE, || {
        format!("only {all} were admitted at all")
    })
}

/// The twin counts from the last change of a window that stands still.
pub(crate) async fn a_fixed_window_is_caught(redis: Arc<Redis>) -> Verdict {
    let name = name();
    // Ten at the end of one window and ten at the beginning of the next, as a crowd that waits for the border comes.
    let ask = |process: Arc<RedisClient>, name: String| async move {
        let script = "local t = redis.call('time') local ms = t[1] * 1000 + math.floor(t[2] / 1000)
            if ms % 400 > 100 and ms % 400 < 300 then return 0 end
            local key = KEYS[1] .. math.floor(ms / 400)
            redis.call('pexpire', key, 800)
            if redis.call('incr', key) <= 10 then return 1 end
            return 0";
        let answer: redis::RedisResult<bool> = redis::Script::new(script)
            .key(name)
            .invoke_async(&mut process.connection())
            .await;
        answer.map_err(|e| e.to_string())
    };
    // A window of the twin is filled at its beginning, so one more is needed at an end: the storm begins anywhere.
    for _ in 0..10 {
        if most_in_a_window(storm(&redis, &name, ask).await?) > RATE {
            return Ok(());
        }
    }
    Err("the twin passed".into())
}

pub(crate) async fn who_cannot_be_admitted_in_time_hears_it_at_once(redis: Arc<Redis>) -> Verdict {
    // So long that it is not over by the time that the second one asks.
    let interval = SOON / 4;
    let (name, process) = (name(), redis.process().await);
    let limiter = process.rate_limiter(&name);
    match limiter.try_acquire(ONE).await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("without a rate: {other:?}")),
    }
    says("set", limiter.try_set_rate(ONE, interval).await)?;
    match limiter.acquire(TEN, SOON).await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("ten at once: {other:?}")),
    }
    says("first", limiter.acquire(ONE, SOON).await)?;
    match limiter.acquire(ONE, interval / 4).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("within a quarter: {other:?}")),
    }
    says("after the interval", limiter.acquire(ONE, SOON).await)
}
