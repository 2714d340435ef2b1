//! What every object in Redis does alike: wait, run a command to its end, undo one that was not answered.
//!
//! 1. A process's waiters for one object stand in one [`Line`], in order of arrival; only its head asks Redis, so that a
//!    thousand waiters here are one contender there.
//! 2. [`wait_for`]: try; then wait for the object's channel, for the end of what is in the way, or for [`RECHECK`],
//!    whichever comes first; try again, and once more when the wait is over.
//! 3. Each try is a task of its own: it runs to its end even if the caller goes away, and what it took is then dropped,
//!    which gives it back.
//! 4. [`undo`] repeats a command that may run twice until Redis has answered it.
//!
//! What it survives: a message that is lost, a wake-up connection that cannot be made, a caller that goes away at any
//! point, a command that gets no answer. **What breaks it**: a command that reaches Redis only after the one that undoes
//! it; what it took goes with its lease.
//!
//! Next to read: `hold.rs`.

use super::{
    client::{Failure, Fate, RedisClient},
    wakeups::Subscription,
};
use crate::{
    LockError, left,
    local::queue::{Head, Queue, Turn},
    registry::Registration,
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Waiters look again after this time even if no message has come.
pub const RECHECK: Duration = Duration::from_millis(500);

/// What has no lease is undone for as long as this, and later no more.
pub(super) const UNDO: Duration = Duration::from_secs(60);

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(1);
/// Nobody asks more often than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// What all handles of one object share in this process: the line of its waiters, and the channel that tells its news.
#[derive(Debug)]
pub(super) struct Line<T = (), A = ()> {
    pub(super) queue: Arc<Queue<T, A>>,
    pub(super) news: Subscription,
    _place: Registration,
}

/// The head of the line; `None` for a caller that does not wait and asks past the line.
pub(super) type HeadOfLine = Option<Arc<Head<()>>>;

/// What one try came to.
pub(super) enum Tried<T> {
    Had(T),
    /// It is not free, and does not become free by itself before this time is over; `None`: unknown.
    Wait(Option<Duration>),
}

impl<T, A> Line<T, A> {
    /// The line of what tells its news on `channel`.
    pub(super) fn new(client: &RedisClient, channel: String, place: Registration) -> Self {
        Self {
            queue: Arc::default(),
            news: Subscription::new(channel, &client.inner().wakeups),
            _place: place,
        }
    }
}

impl Line {
    pub(super) fn channel(&self) -> &str {
        self.news.channel()
    }

    /// Waits for the turn to ask, until `until`; `None` where it did not come. A caller that does not wait asks at once: that
    /// another of this process is asking just now says nothing about what is free.
    pub(super) async fn turn(
        &self,
        wait: Duration,
        until: Instant,
    ) -> Result<Option<HeadOfLine>, LockError> {
        if wait.is_zero() {
            return Ok(Some(None));
        }
        match self.queue.join((), left(until)).await {
            Some(Turn::Contend(head)) => Ok(Some(Some(head))),
            Some(Turn::Failed(error)) => Err(error),
            Some(Turn::Handed(())) | None => Ok(None),
        }
    }
}

/// Tells all waiters behind the head that the server is unavailable.
pub(super) fn fail(place: &HeadOfLine, failure: Failure) -> LockError {
    if let Some(head) = place {
        head.fail(&failure.error);
    }
    failure.error
}

/// Tries until it succeeds or the time is up. Without `news` it only asks again when the hint is over.
///
/// # Cancel safety
///
/// The try that is under way goes on, and what it takes is dropped.
pub(super) async fn wait_for<T, F>(
    client: &RedisClient,
    news: Option<&Subscription>,
    until: Instant,
    attempt: impl Fn() -> F + Send + Sync,
) -> Result<Option<T>, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<Tried<T>, LockError>> + Send + 'static,
{
    loop {
        let hint = match to_the_end(client, attempt()).await? {
            Tried::Had(had) => return Ok(Some(had)),
            Tried::Wait(hint) => hint,
        };
        let left = left(until);
        if left.is_zero() {
            return Ok(None);
        }
        let pause = hint
            .unwrap_or(RECHECK)
            .clamp(SHORTEST_PAUSE, RECHECK)
            .min(left);
        match news {
            // Woken or not: look again.
            Some(news) => drop(timeout(pause, news.news()).await),
            None => sleep(pause).await,
        }
    }
}

/// How long until a lease of `millis` milliseconds has surely ended; `None` for a negative number, which means unknown.
pub(super) fn hint(millis: i64) -> Option<Duration> {
    u64::try_from(millis)
        .ok()
        .map(|millis| Duration::from_millis(millis) + Duration::from_millis(1))
}

/// Runs to its end even if the caller goes away.
pub(super) async fn to_the_end<T, F>(client: &RedisClient, task: F) -> Result<T, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, LockError>> + Send + 'static,
{
    match client.spawn(task).await {
        Ok(outcome) => outcome,
        Err(stopped) => Err(LockError::unavailable("redis", stopped)),
    }
}

/// Runs a command that may run twice, in the background, until Redis has answered it, for at most `limit`. After the
/// first try `then` is dropped: the waiters behind it find out for themselves.
pub(super) fn undo<F>(
    client: &RedisClient,
    limit: Duration,
    then: impl Send + 'static,
    command: impl Fn() -> F + Send + 'static,
) where
    F: Future<Output = Result<bool, Failure>> + Send,
{
    client.spawn(async move {
        let (ends, mut pause, mut then) = (Instant::now() + limit, RETRY_FIRST, Some(then));
        while let Err(failure) = command().await {
            then.take();
            // What Redis has refused it would refuse again.
            if failure.fate == Fate::Answered || Instant::now() >= ends {
                tracing::warn!(error = %failure.error, "what a command took is not given back");
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_LONGEST);
        }
    });
}
