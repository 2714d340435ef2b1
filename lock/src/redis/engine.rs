//! What every object in Redis shares: waiting, running a command to its end, undoing one that was not answered.
//!
//! 1. A process's waiters for one object stand in one [`Line`]; only its head asks Redis, so a thousand waiters here
//!    are one contender there.
//! 2. [`try_until`]: try; wait for the object's channel, for the end of what is in the way, or for [`RECHECK_INTERVAL`],
//!    whichever comes first; try again, and once more when the wait is over.
//! 3. Each try is a task of its own, which runs to its end even if the caller goes away. What it took is then dropped,
//!    and so released.
//! 4. Readers, and waiters for whom there are permits, share the head ([`Head::invite_while`]).
//! 5. [`undo_in_background`] repeats a command that may run twice until Redis has carried it out; one that finds nothing,
//!    while what it undoes may still arrive.
//!
//! It survives a command that reaches Redis up to [`MAX_COMMAND_DELAY`](super::failure::MAX_COMMAND_DELAY) after the
//! one that undoes it. One that comes later still keeps the lock until its lease ends.
//!
//! Next to read: `local/line.rs`, then `hold.rs`.

use super::{
    client::RedisClient,
    failure::{CommandFailure, SERVER},
    subscription::Subscription,
};
use crate::{
    LockError,
    local::line::{Head, Line, Turn},
    registry::Registration,
    time_left,
};
use parking_lot::Mutex;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Waiters look again after this time even without a message: a lost message delays them by no more.
pub const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

/// An undo without an answer is repeated for at least this time, because the lease of what it undoes is no bound: another guard
/// may have extended it, and a permit may have none.
pub(super) const MIN_UNDO_TIME: Duration = Duration::from_secs(10 * 60);

/// The first pause between two tries of an undo; each further one is twice as long. Nobody waits for it, and the server may be
/// down.
const FIRST_UNDO_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two tries of an undo.
const MAX_UNDO_PAUSE: Duration = Duration::from_secs(1);
/// The pause before the next try while Redis is unavailable. It can be short, because reconnecting has pauses of its own.
const OUTAGE_PAUSE: Duration = Duration::from_millis(100);
/// The shortest pause between two tries: a lease that ends at once must not make a waiter spin.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(1);

/// What all handles of one object share in this process: the line of its waiters, its channel, and why its last try failed.
#[derive(Debug)]
pub(super) struct SharedObject<T = (), A = ()> {
    pub(super) line: Arc<Line<T, A>>,
    pub(super) subscription: Subscription,
    pub(super) outage: Outage,
    /// Whether the channel carries messages; if not, it only names the line.
    has_channel: bool,
    _registration: Registration,
}

/// The error of the last try if Redis was unavailable then, for the waiters whose wait ends before another one; empty if it was
/// not.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<LockError>>);

impl Outage {
    /// Fails with the error of the last try, if Redis was unavailable then.
    pub(super) fn fail_if_unavailable(&self) -> Result<(), LockError> {
        self.0.lock().clone().map_or(Ok(()), Err)
    }
}

/// The head of the line; `None` for a caller that does not wait and so skips the line.
pub(super) type HeadOfLine<A = ()> = Option<Arc<Head<(), A>>>;

/// The result of one try: acquired, not free, or an outage that is waited out.
pub(super) enum TryResult<T> {
    Acquired(T),
    /// It is not free. The next try comes within this time, after which it may be free by itself; `None` if the time is unknown.
    RetryWithin(Option<Duration>),
    /// Redis was unavailable, and the client waits that out. What the try may have taken is undone.
    Unavailable(LockError),
}

impl<T, A> SharedObject<T, A> {
    /// An object whose releases are announced on `channel` by the server that has the key `name`.
    pub(super) fn new(client: &RedisClient, name: &Arc<str>, channel: String, registration: Registration) -> Self {
        Self {
            line: Arc::default(),
            subscription: Subscription::new(client, name, channel),
            outage: Outage::default(),
            has_channel: true,
            _registration: registration,
        }
    }

    /// An object without a channel, whose waiters are woken by no message and try again by time.
    pub(super) fn without_channel(client: &RedisClient, name: &Arc<str>, registration: Registration) -> Self {
        Self { has_channel: false, ..Self::new(client, name, String::new(), registration) }
    }

    pub(super) fn channel(&self) -> &str {
        self.subscription.channel()
    }
}

impl<A: Send> SharedObject<(), A> {
    /// Waits for a turn in the line, and then tries until an attempt succeeds; `None` if the time is up, or the error if Redis
    /// is unavailable then. A caller that does not wait tries at once: the lock may be free although another waiter of this
    /// process is at the head.
    ///
    /// # Cancel safety
    ///
    /// As [`try_until`].
    pub(super) async fn wait_and_try<T, F>(
        &self,
        client: &RedisClient,
        request: A,
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
            match self.line.join(request, time_left(until)).await {
                Some(Turn::Contend(head)) => Some(head),
                Some(Turn::Failed(error)) => return Err(error),
                Some(Turn::Handed(())) | None => {
                    return self.outage.fail_if_unavailable().map(|()| None);
                }
            }
        };
        let subscription = self.has_channel.then_some(&self.subscription);
        let attempt = || attempt(head.clone());
        try_until(client, subscription, &self.outage, until, attempt).await
    }
}

/// Decides what a failed try means. If the client waits out an outage, its wait goes on. Otherwise all waiters behind the
/// head get the error of an unavailable server; a refusal for good may concern this caller alone.
pub(super) fn result_after_failure<T, H, A>(
    client: &RedisClient,
    head: Option<&Head<H, A>>,
    failure: CommandFailure,
) -> Result<TryResult<T>, LockError> {
    if client.keeps_waiting_after(&failure.error) {
        return Ok(TryResult::Unavailable(failure.error));
    }
    if failure.affects_all_waiters()
        && let Some(head) = head
    {
        head.fail_waiters(&failure.error);
    }
    Err(failure.error)
}

/// Pauses before the next try, if the client waits out such an error and there is time left.
///
/// # Errors
///
/// The given error, otherwise.
///
/// # Cancel safety
///
/// Safe.
pub(super) async fn pause_or_return_error(client: &RedisClient, error: LockError, until: Instant) -> Result<(), LockError> {
    let left = time_left(until);
    if left.is_zero() || !client.keeps_waiting_after(&error) {
        return Err(error);
    }
    tracing::debug!(%error, "waiting for redis");
    sleep(OUTAGE_PAUSE.min(left)).await;
    Ok(())
}

/// Tries until an attempt succeeds; `None` if the time is up, or the error if Redis is unavailable then. A pause between two
/// tries ends with a message of `subscription`, or else after the time that the last try named, [`RECHECK_INTERVAL`] at most.
///
/// # Cancel safety
///
/// The try in progress continues, and what it takes is dropped.
pub(super) async fn try_until<T, F>(
    client: &RedisClient,
    subscription: Option<&Subscription>,
    outage: &Outage,
    until: Instant,
    attempt: impl Fn() -> F + Send + Sync,
) -> Result<Option<T>, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<TryResult<T>, LockError>> + Send + 'static,
{
    loop {
        let (retry_in, error) = match run_to_end(client, attempt()).await? {
            TryResult::Acquired(acquired) => {
                *outage.0.lock() = None;
                return Ok(Some(acquired));
            }
            TryResult::RetryWithin(retry_in) => (retry_in, None),
            TryResult::Unavailable(error) => (Some(OUTAGE_PAUSE), Some(error)),
        };
        *outage.0.lock() = error;
        let left = time_left(until);
        if left.is_zero() {
            return outage.fail_if_unavailable().map(|()| None);
        }
        let pause = retry_in.unwrap_or(RECHECK_INTERVAL).clamp(MIN_RETRY_PAUSE, RECHECK_INTERVAL).min(left);
        match subscription {
            Some(subscription) => drop(timeout(pause, subscription.wait_for_message()).await),
            None => sleep(pause).await,
        }
    }
}

/// The time until a lease of `millis` milliseconds has surely ended; `None` for a negative number, which means unknown.
pub(super) fn time_until_lease_end(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(|millis| Duration::from_millis(millis) + Duration::from_millis(1))
}

/// Runs `task` to its end in the client's runtime, even if the caller is dropped, and returns its result;
/// [`LockError::Unavailable`] if it panicked or the runtime ended.
pub(super) async fn run_to_end<T, F>(client: &RedisClient, task: F) -> Result<T, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, LockError>> + Send + 'static,
{
    match client.spawn(task).await {
        Ok(outcome) => outcome,
        Err(stopped) => Err(LockError::unavailable(SERVER, stopped)),
    }
}

/// Runs a repeatable command in the background until Redis has carried it out (`true`) or refused it for good, for
/// [`MIN_UNDO_TIME`] or the `lease`, whichever is longer. While it finds nothing (`false`), it is repeated for
/// `may_arrive_within`: what it undoes may still be on its way over an abandoned connection. `after_first_try` is dropped after
/// the first try, so that the waiters behind it may try.
pub(super) fn undo_in_background<F>(
    client: &RedisClient,
    lease: Duration,
    may_arrive_within: Duration,
    after_first_try: impl Send + 'static,
    command: impl Fn() -> F + Send + 'static,
) where
    F: Future<Output = Result<bool, CommandFailure>> + Send,
{
    client.spawn(async move {
        let (ends, mut pause, mut after_first_try) = (
            Instant::now() + lease.max(MIN_UNDO_TIME),
            FIRST_UNDO_PAUSE,
            Some(after_first_try),
        );
        let mut found_nothing = None;
        loop {
            let answer = command().await;
            let now = Instant::now();
            match answer {
                Ok(true) => return,
                Ok(false) if now >= *found_nothing.get_or_insert(now) + may_arrive_within => return,
                Err(failure) if !failure.retryable || now >= ends => {
                    tracing::warn!(error = %failure.error, "undoing a command has failed: what it took stays until its lease ends");
                    return;
                }
                Ok(false) | Err(_) => {}
            }
            after_first_try.take();
            sleep(pause).await;
            pause = (pause * 2).min(MAX_UNDO_PAUSE);
        }
    });
}
