//! Where this process waits for one object in Redis that is no lock: a semaphore, a latch, a rate limiter.
//!
//! 1. Who comes first is at the head of the line and asks Redis; the others wait behind it, so that a thousand waiters
//!    here are one contender there ([`Queue`]).
//! 2. The head looks, subscribes to the object's channel, looks again, and then sleeps until a message, the end of what
//!    it waits for, or [`RECHECK`], whichever comes first.
//!
//! What it survives: a lost message, a cut subscription (the timed re-check). **What breaks it**: nothing; but one who
//! waits for many permits holds up those behind it in this process, as the line is in order of arrival.
//!
//! Next to read: `semaphore.rs`.

use super::{
    client::{RedisClient, RedisOptions},
    contend::RECHECK,
    subscription::Subscription,
    wakeups::Wakeups,
};
use crate::{
    LockError, Owner,
    local::{Head, Queue, Turn},
};
use parking_lot::Mutex;
use redis::RedisError;
use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

/// What an unanswered command may have done is undone for as long as this, and later no more.
pub(super) const UNDO: Duration = Duration::from_secs(60);

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(1);

/// All stations of one process.
#[derive(Debug)]
pub(super) struct Stations {
    prefix: String,
    process: Uuid,
    wakeups: Arc<Wakeups>,
    all: Mutex<HashMap<String, Weak<Station>>>,
}

/// What all handles of one object share in this process.
#[derive(Debug)]
pub(super) struct Station {
    queue: Arc<Queue<()>>,
    news: Subscription,
}

/// Where one who asks stands: at the head of the line, or beside it where it does not wait at all.
#[derive(Debug)]
pub(super) struct Place(Option<Head<()>>);

impl Place {
    /// Tells all who wait behind that the server is not there.
    pub(super) fn fail(self, error: &LockError) {
        if let Some(head) = self.0 {
            head.fail(error);
        }
    }
}

impl Stations {
    pub(super) fn new(options: &RedisOptions, wakeups: &Arc<Wakeups>) -> Self {
        let (prefix, process) = (options.prefix.clone(), options.process.id());
        Self { prefix, process, wakeups: Arc::clone(wakeups), all: Mutex::default() }
    }

    /// The key of an object, with the configured prefix.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// This process, as objects that tell processes apart see it.
    pub(super) fn process(&self) -> Uuid {
        self.process
    }

    /// The station of the object that tells its news on `channel`.
    pub(super) fn at(&self, channel: String) -> Arc<Station> {
        let mut all = self.all.lock();
        if let Some(station) = all.get(&channel).and_then(Weak::upgrade) {
            return station;
        }
        all.retain(|_, station| station.strong_count() > 0);
        let station =
            Arc::new(Station { queue: Arc::default(), news: Subscription::new(channel.clone(), &self.wakeups) });
        all.insert(channel, Arc::downgrade(&station));
        station
    }
}

impl Station {
    pub(super) fn channel(&self) -> &str {
        self.news.channel()
    }

    /// Waits for the turn to ask, at most `wait`; `None` where it did not come. Who does not wait asks at once: that
    /// another of this process is asking just now says nothing about what is free.
    pub(super) async fn turn(&self, owner: Owner, wait: Duration) -> Result<Option<Place>, LockError> {
        if wait.is_zero() {
            return Ok(Some(Place(None)));
        }
        match self.queue.join(owner, wait).await {
            Some(Turn::Contend(head)) => Ok(Some(Place(Some(head)))),
            Some(Turn::Failed(error)) => Err(error),
            Some(Turn::Handed(())) | None => Ok(None),
        }
    }

    /// Waits for news, at most until `until`, and no longer than `hint`; `false` where the time is up.
    pub(super) async fn pause(&self, until: Instant, hint: Duration) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        // What happened between the look and the subscription would be missed: so look again at once.
        if timeout(left, self.news.begin()).await == Ok(true) {
            return true;
        }
        // Woken or not: look again.
        timeout(RECHECK.min(left).min(hint), self.news.news().notified()).await.ok();
        true
    }
}

/// Runs a command that may be run twice until it has an answer, for at most [`UNDO`].
pub(super) async fn insist<F: Future<Output = Result<bool, RedisError>>>(command: impl Fn() -> F) {
    let (ends, mut pause) = (Instant::now() + UNDO, RETRY_FIRST);
    while let Err(error) = command().await {
        if Instant::now() >= ends {
            tracing::warn!(%error, "given up: what an unanswered command took is not given back");
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}

/// Runs to its end even if the caller goes away.
pub(super) async fn to_the_end<T, F>(client: &RedisClient, task: F) -> Result<T, LockError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, LockError>> + Send + 'static,
{
    match client.spawn(task).await {
        Ok(outcome) => outcome,
        Err(stopped) => Err(LockError::Unavailable { server: "redis", reason: stopped.to_string() }),
    }
}
