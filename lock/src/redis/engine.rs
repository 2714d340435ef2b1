//! What every object in Redis shares: waiting, running a command to its end, undoing one that was not answered.
//!
//! 1. A process's waiters for one object stand in one [`Line`]; only its head asks Redis, so a thousand waiters here
//!    are one contender there.
//! 2. [`wait_for`]: try; wait for the object's channel, for the end of what is in the way, or for [`RECHECK_INTERVAL`],
//!    whichever comes first; try again, and once more when the wait is over.
//! 3. Each try is a task of its own, which runs to its end even if the caller goes away. What it took is then dropped,
//!    and so released.
//! 4. Readers, and waiters for whom there are permits, share the head ([`Head::invite`]).
//! 5. [`undo`] repeats a command that may run twice until Redis has carried it out and found what it undoes.
//!
//! It survives a command that reaches Redis up to [`MAX_COMMAND_DELAY`](super::failure::MAX_COMMAND_DELAY) after the
//! one that undoes it. One that comes later still keeps the lock until its lease ends.
//!
//! Next to read: `hold.rs`.

use super::{client::RedisClient, failure::Failure, wakeups::Subscription};
use crate::{
    LockError, left,
    local::line::{Head, Line, Turn},
    registry::Registration,
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Waiters look again after this time even without a message.
pub const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long an undo is repeated, at least: the lease may have been extended by another guard, or there is none.
pub(super) const UNDO_LIMIT: Duration = Duration::from_secs(10 * 60);

const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(100);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The shortest pause between two tries.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// What all handles of one object share in this process: the line of its waiters, and its channel.
#[derive(Debug)]
pub(super) struct SharedObject<T = (), A = ()> {
    pub(super) line: Arc<Line<T, A>>,
    pub(super) news: Subscription,
    /// Whether the channel carries messages; if not, it only names the line.
    has_news: bool,
    _place: Registration,
}

/// The head of the line; `None` for a caller that does not wait and so skips the line.
pub(super) type HeadOfLine<A = ()> = Option<Arc<Head<(), A>>>;

/// The result of one try.
pub(super) enum TryResult<T> {
    Acquired(T),
    /// Not free; it cannot become free by itself before this time is over. `None`: unknown.
    RetryWithin(Option<Duration>),
}

impl<T, A> SharedObject<T, A> {
    /// An object whose releases are announced on `channel`, by the server that has the key `name`.
    pub(super) fn new(
        client: &RedisClient,
        name: &str,
        channel: String,
        place: Registration,
    ) -> Self {
        Self {
            line: Arc::default(),
            news: Subscription::new(client, name, channel),
            has_news: true,
            _place: place,
        }
    }

    /// An object without a channel.
    pub(super) fn without_news(client: &RedisClient, name: String, place: Registration) -> Self {
        Self {
            has_news: false,
            ..Self::new(client, &name.clone(), name, place)
        }
    }

    pub(super) fn channel(&self) -> &str {
        self.news.channel()
    }
}

impl<A: Send> SharedObject<(), A> {
    /// Waits for a turn, and then until an attempt succeeds or the time is up. A caller that does not wait asks at
    /// once: that another waiter of this process is asking says nothing about whether the lock is free.
    ///
    /// # Cancel safety
    ///
    /// As [`wait_for`].
    pub(super) async fn wait<T, F>(
        &self,
        client: &RedisClient,
        asks: A,
        wait: Duration,
        until: Instant,
        attempt: impl Fn(HeadOfLine<A>) -> F + Send + Sync,
    ) -> Result<Option<T>, LockError>
    where
        T: Send + 'static,
        F: Future<Output = Result<TryResult<T>, LockError>> + Send + 'static,
    {
        let head = if wait.is_zero() {
            None
        } else {
            match self.line.join(asks, left(until)).await {
                Some(Turn::Contend(head)) => Some(head),
                Some(Turn::Failed(error)) => return Err(error),
                Some(Turn::Handed(())) | None => return Ok(None),
            }
        };
        let news = self.has_news.then_some(&self.news);
        wait_for(client, news, until, || attempt(head.clone())).await
    }
}

/// Passes an unavailable server on to all waiters behind the head. A refusal for good may be this caller's own fault.
pub(super) fn fail<T, A>(head: Option<&Head<T, A>>, failure: Failure) -> LockError {
    if failure.retryable
        && let Some(head) = head
    {
        head.fail(&failure.error);
    }
    failure.error
}

/// Tries until it succeeds or the time is up. Without `news` it only waits for the hint.
///
/// # Cancel safety
///
/// The try in progress continues, and what it takes is dropped.
pub(super) async fn wait_for<T, F>(
    client: &RedisClient,
    news: Option<&Subscription>,
    until: Instant,
    attempt: impl Fn() -> F + Send + Sync,
) -> Result<Option<T>, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<TryResult<T>, LockError>> + Send + 'static,
{
    loop {
        let hint = match run_to_end(client, attempt()).await? {
            TryResult::Acquired(acquired) => return Ok(Some(acquired)),
            TryResult::RetryWithin(hint) => hint,
        };
        let left = left(until);
        if left.is_zero() {
            return Ok(None);
        }
        let pause = hint
            .unwrap_or(RECHECK_INTERVAL)
            .clamp(MIN_PAUSE, RECHECK_INTERVAL)
            .min(left);
        match news {
            Some(news) => drop(timeout(pause, news.news()).await),
            None => sleep(pause).await,
        }
    }
}

/// The time until a lease of `millis` milliseconds has surely ended; `None` for a negative number, which means unknown.
pub(super) fn hint(millis: i64) -> Option<Duration> {
    u64::try_from(millis)
        .ok()
        .map(|millis| Duration::from_millis(millis) + Duration::from_millis(1))
}

/// Runs a task to its end even if the caller goes away.
pub(super) async fn run_to_end<T, F>(client: &RedisClient, task: F) -> Result<T, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, LockError>> + Send + 'static,
{
    match client.spawn(task).await {
        Ok(outcome) => outcome,
        Err(stopped) => Err(LockError::unavailable("redis", stopped)),
    }
}

/// Runs a repeatable command in the background until Redis has carried it out or refused it for good, for
/// [`UNDO_LIMIT`] or the `lease`, whichever is longer. If it finds nothing, it is repeated for `late`: what it undoes
/// may still be on its way over an abandoned connection. `then` is dropped after the first try, so that the waiters
/// behind it find out for themselves.
pub(super) fn undo<F>(
    client: &RedisClient,
    lease: Duration,
    late: Duration,
    then: impl Send + 'static,
    command: impl Fn() -> F + Send + 'static,
) where
    F: Future<Output = Result<bool, Failure>> + Send,
{
    client.spawn(async move {
        let (ends, mut pause, mut then) = (
            Instant::now() + lease.max(UNDO_LIMIT),
            FIRST_RETRY_PAUSE,
            Some(then),
        );
        let mut found_nothing = None;
        loop {
            let answer = command().await;
            let now = Instant::now();
            match answer {
                Ok(true) => return,
                Ok(false) if now >= *found_nothing.get_or_insert(now) + late => return,
                Err(failure) if !failure.retryable || now >= ends => {
                    tracing::warn!(error = %failure.error, "what a command took is not given back");
                    return;
                }
                Ok(false) | Err(_) => {}
            }
            then.take();
            sleep(pause).await;
            pause = (pause * 2).min(MAX_RETRY_PAUSE);
        }
    });
}
