//! Redisson's count-down latch: a count, and a channel that announces zero.
//!
//! 1. [`try_set_count`](RedisLatch::try_set_count) sets the count once.
//! 2. Each [`count_down`](RedisLatch::count_down) takes one off; the last one deletes the key, which opens the latch.
//! 3. While this process has waiters, one task reads the count for all of them, on each message and every half second. Each
//!    waiter reads it once more when its limit is over.
//! 4. Each opening is counted in `{n}:opened`, so a waiter goes on even if the latch was set again before it looked.
//!
//! Next to read: `subscription.rs`.

use super::{
    client::RedisClient,
    engine::{RECHECK_INTERVAL, SharedObject, pause_or_return_error},
    failure::to_lock_error,
    keys::suffixed,
    scripts::{self, NotifyingScript, ScriptCall},
};
use crate::{LockError, deadline};
use parking_lot::Mutex;
use redis::AsyncCommands;
use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{timeout, timeout_at},
};

/// A handle on one latch in Redis. Cloning it is cheap.
///
/// Source: Redisson's `RCountDownLatch`.
///
/// # Survives
///
/// A lost message, a waiter that goes away, a latch that is set again under its waiters.
///
/// # What breaks it
///
/// - a process that crashes before it counts down: the others wait until their limit;
/// - a count-down without an answer may have counted; do not repeat it blindly;
/// - deleting the latch opens it;
/// - a Java process that counts the last one down records no opening: a waiter that misses its message and finds the latch set
///   again waits for the next opening, as in Redisson.
///
/// # Cost
///
/// One script to count down. One task of a process looks for all of its waiters, at each message and twice a second.
///
/// # Format
///
/// Redisson's `RCountDownLatch`, 3.x and 4.x: STRING `n`, channel `redisson_countdownlatch__channel__{n}`; ours alone: STRING
/// `{n}:opened`, kept while the latch is closed and for a day.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// use std::num::NonZeroU32;
///
/// let latch = redis.latch("latch");
/// latch.try_set_count(const { NonZeroU32::new(6).unwrap() }).await?;
/// // In six other places: latch.count_down().await?
/// latch.wait(Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisLatch {
    client: RedisClient,
    name: Arc<str>,
    shared: Arc<SharedLatch>,
}

/// What all handles of one latch share in this process.
#[derive(Debug)]
pub(super) struct SharedLatch {
    object: SharedObject,
    /// The number of the last read that was sent: a read says nothing about changes after that.
    last_read_number: AtomicU64,
    poller: Poller,
}

/// What the one task that reads the count shares with all waiters: the last result, and whether the task runs.
#[derive(Debug)]
struct Poller {
    /// The task's last read.
    last: watch::Sender<NumberedRead>,
    /// Whether the task runs. Waiters join and the task ends under this mutex, so it runs while anybody waits.
    running: Mutex<bool>,
}

/// The number of a read, and its result.
type NumberedRead = (u64, Result<LatchState, LockError>);

/// What one read has shown: whether the latch is closed, and how often it was opened.
#[derive(Debug, Clone, Copy)]
struct LatchState {
    closed: bool,
    opened: u64,
}

impl RedisClient {
    /// Makes a handle on the latch `name`.
    #[must_use]
    pub fn latch(&self, name: &str) -> RedisLatch {
        let name = self.key(name);
        let shared = self.shared(&name, |registration| SharedLatch {
            // The braces are there even if the name has some.
            object: SharedObject::new(self, &name, format!("redisson_countdownlatch__channel__{{{name}}}"), registration),
            last_read_number: AtomicU64::new(0),
            poller: Poller::default(),
        });
        RedisLatch { client: self.clone(), name, shared }
    }
}

impl RedisLatch {
    /// Returns the name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes the latch until `count` have counted down; `false` if it is already closed.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may be set or not; asking again is safe. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may be set or not.
    pub async fn try_set_count(&self, count: NonZeroU32) -> Result<bool, LockError> {
        self.client.check_name(&self.name)?;
        let script = self.script_call(&scripts::LATCH_SET);
        let script = script.arg(count).arg(self.shared.object.channel());
        Ok(self.client.run_script(&script).await?)
    }

    /// Counts down by one. Returns how many are left, 0 if this call opened it, or `None` if it was open already.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may have counted or not, and nothing can undo it. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may have counted or not.
    pub async fn count_down(&self) -> Result<Option<u64>, LockError> {
        self.client.check_name(&self.name)?;
        let script = self.script_call(&scripts::LATCH_COUNT_DOWN);
        let script = script.arg(self.shared.object.channel());
        Ok(self.client.run_script(&script).await?)
    }

    /// A call of a script with the keys of the count and of how often the latch was opened.
    fn script_call(&self, script: &NotifyingScript) -> ScriptCall {
        let opened = suffixed(&self.name, "opened");
        self.client.script(script).call([&*self.name, &opened])
    }

    /// Returns how many must still count down; 0 if it is open.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn get_count(&self) -> Result<u64, LockError> {
        self.client.read_number(&self.name).await
    }

    /// Waits until the latch is open, or was opened since the call, at most `limit`. A latch that is not set is open.
    ///
    /// # Errors
    ///
    /// [`LockError::Timeout`] if it stayed closed for all of `limit`, [`LockError::Unavailable`] if Redis is down or the
    /// client is closed, [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn wait(&self, limit: Duration) -> Result<(), LockError> {
        self.client.while_open(self.wait_until_open(limit)).await
    }

    /// Waits until the latch is open, or was opened since the call, at most `limit`; starts the task that reads the count, if
    /// it does not run.
    async fn wait_until_open(&self, limit: Duration) -> Result<(), LockError> {
        self.client.check_name(&self.name)?;
        let until = deadline(limit);
        let (since, first) = loop {
            match self.read_state().await {
                (number, Ok(look)) => break (number, look),
                (_, Err(error)) => pause_or_return_error(&self.client, error, until).await?,
            }
        };
        if !first.closed {
            return Ok(());
        }
        if limit.is_zero() {
            return Err(LockError::timeout(&*self.name, limit));
        }
        let is_open = |look: &LatchState| !look.closed || look.opened > first.opened;
        let (mut seen, is_first) = self.shared.poller.add_waiter();
        if is_first {
            self.client.spawn(self.clone().poll_for_all());
        }
        let decides = |look: &Result<LatchState, LockError>| match look {
            Ok(look) => is_open(look),
            Err(error) => !self.client.keeps_waiting_after(error),
        };
        let told = seen.wait_for(|(number, look)| *number > since && decides(look));
        if let Ok(Ok(look)) = timeout_at(until, told).await {
            return look.1.clone().map(drop);
        }
        if is_open(&self.read_state().await.1?) {
            return Ok(());
        }
        Err(LockError::timeout(&*self.name, limit))
    }

    /// Reads the count on each message and every half second, and shows the result, also an error, to the waiters while there
    /// are any.
    async fn poll_for_all(self) {
        let SharedLatch { object, poller, .. } = &*self.shared;
        while !poller.stop_if_idle() {
            drop(poller.last.send_replace(self.read_state().await));
            // Pauses until a message, the end of the last waiter, or the next interval.
            let pause = timeout(RECHECK_INTERVAL, object.subscription.wait_for_message());
            tokio::select! {
                _ = pause => {}
                () = poller.last.closed() => {}
            }
        }
    }

    /// Reads the count and how often the latch was opened; returns the number of this read too.
    async fn read_state(&self) -> (u64, Result<LatchState, LockError>) {
        let number = self.shared.last_read_number.fetch_add(1, Ordering::AcqRel) + 1;
        let keys = [&*self.name, &suffixed(&self.name, "opened")];
        let look = self.client.connection().mget::<_, (Option<i64>, Option<u64>)>(&keys).await;
        let look =
            look.map(|(count, opened)| LatchState { closed: count.is_some_and(|left| left > 0), opened: opened.unwrap_or(0) });
        (number, look.map_err(to_lock_error))
    }
}

impl Default for Poller {
    fn default() -> Self {
        let nothing = LatchState { closed: true, opened: 0 };
        Self { last: watch::Sender::new((0, Ok(nothing))), running: Mutex::new(false) }
    }
}

impl Poller {
    /// Adds a waiter; returns where it gets the results, and whether it must start the task.
    fn add_waiter(&self) -> (watch::Receiver<NumberedRead>, bool) {
        let mut running = self.running.lock();
        let must_start = !std::mem::replace(&mut *running, true);
        (self.last.subscribe(), must_start)
    }

    /// Ends the task if nobody waits; returns whether it did.
    fn stop_if_idle(&self) -> bool {
        let mut running = self.running.lock();
        *running = self.last.receiver_count() > 0;
        !*running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::atomic::AtomicUsize, thread};

    /// Two waiters that join at the same moment, and the next after them.
    #[test]
    fn as_long_as_anybody_waits_one_looks_for_all() {
        let rounds: Vec<_> = (0..10_000).map(|_| Poller::default()).collect();
        // They spin until both are there: a barrier would wake them one after the other.
        let there = AtomicUsize::new(0);
        let come = || -> Vec<_> {
            let round = |(round, poller): (usize, &Poller)| {
                there.fetch_add(1, Ordering::AcqRel);
                let both = 2 * (round + 1);
                for spins in 1.. {
                    if there.load(Ordering::Acquire) >= both {
                        break;
                    }
                    if spins % 1000 == 0 {
                        thread::yield_now();
                    }
                }
                poller.add_waiter()
            };
            rounds.iter().enumerate().map(round).collect()
        };
        thread::scope(|threads| {
            let [one, other] = [threads.spawn(come), threads.spawn(come)].map(|t| t.join().unwrap());
            for (poller, (one, other)) in rounds.iter().zip(one.into_iter().zip(other)) {
                assert!(one.1 != other.1, "one of the two starts it");
                assert!(!poller.add_waiter().1 && !poller.stop_if_idle());
                drop((one, other));
                assert!(poller.stop_if_idle() && poller.add_waiter().1, "the next starts it again");
            }
        });
    }
}
