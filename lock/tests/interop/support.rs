//! What every test here needs: both sides, a look at Redis from outside, and how a wake-up is told from a re-check.

use super::peer::{Peer, Pending, Told};
use oversell::redis_at::redis_at;
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{RedisClient, RedisOptions},
};
use redis::{AsyncTypedCommands, aio::MultiplexedConnection};
use std::{
    collections::HashMap,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// What a test comes to: shown, or what was seen instead.
pub(crate) type Verdict = Result<(), String>;

/// What must come has come by then.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A wait that ends, and not before a busy machine has seen who waits, and who came behind it.
pub(crate) const SEEN: Duration = Duration::from_secs(5);

/// Both sides: a Java process, and what makes processes of ours.
pub(crate) struct Sides {
    pub(crate) java: Peer,
    /// The prefix of its tests' names.
    pub(crate) version: &'static str,
    pub(crate) url: String,
}

impl Sides {
    pub(crate) async fn start(version: &'static str, url: String) -> Result<Self, String> {
        Ok(Self {
            java: Peer::java("java", "redisson", version, &url).await?,
            version,
            url,
        })
    }

    /// A new process of ours.
    pub(crate) fn ours(&self) -> RedisClient {
        RedisClient::new(RedisOptions::new(&self.url).timeout(Duration::from_secs(5)))
            .expect("an address")
    }

    /// A connection that looks at the server from outside.
    pub(crate) async fn outside(&self) -> MultiplexedConnection {
        redis_at(&self.url).await.expect("redis is there")
    }

    /// A name that no other test uses.
    pub(crate) fn name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        format!(
            "interop:{}:{}",
            self.version,
            NEXT.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// The hash of a lock.
    pub(crate) async fn holders(&self, name: &str) -> HashMap<String, String> {
        self.outside().await.hgetall(name).await.expect("a hash")
    }

    /// How many connections listen for news of this object.
    pub(crate) async fn listeners(&self, name: &str) -> usize {
        let mut outside = self.outside().await;
        let channels: Vec<String> = redis::cmd("PUBSUB")
            .arg("CHANNELS")
            .arg(format!("*{{{name}}}*"))
            .query_async(&mut outside)
            .await
            .expect("channels");
        if channels.is_empty() {
            return 0;
        }
        let told: HashMap<String, usize> = redis::cmd("PUBSUB")
            .arg("NUMSUB")
            .arg(channels)
            .query_async(&mut outside)
            .await
            .expect("counts");
        told.values().sum()
    }

    /// Waits until so many listen: who waits has then seen that it must.
    pub(crate) async fn until_listening(&self, name: &str, listeners: usize) -> Verdict {
        until(&format!("{listeners} listen"), || async {
            self.listeners(name).await == listeners
        })
        .await
    }

    /// Waits until nothing is left of the object but these keys.
    pub(crate) async fn until_left(&self, name: &str, keys: &[&str]) -> Verdict {
        until(&format!("{keys:?} are left"), || async {
            let mut left = self
                .outside()
                .await
                .keys(format!("*{name}*"))
                .await
                .expect("keys");
            left.sort();
            left == keys
        })
        .await
    }

    /// Sends `message` to all who listen for news of this object.
    pub(crate) async fn publish(&self, name: &str, message: u32) {
        let mut outside = self.outside().await;
        let channels: Vec<String> = redis::cmd("PUBSUB")
            .arg("CHANNELS")
            .arg(format!("*{{{name}}}*"))
            .query_async(&mut outside)
            .await
            .expect("channels");
        for channel in channels {
            outside.publish(channel, message).await.expect("published");
        }
    }

    /// That `waiter`, a waiting Java thread, is still there after Java has answered a number of other threads' questions
    /// which it was asked later: it has not seen what happened before.
    pub(crate) async fn sleeps_on(&self, waiter: &mut Pending) -> Verdict {
        const ASKED: usize = 50;
        for _ in 0..ASKED {
            self.java.ask("bystander", "owner").await?;
        }
        match waiter.came() {
            None => Ok(()),
            Some(answer) => Err(format!("java went on without a message: {answer:?}")),
        }
    }
}

impl Told for Sides {
    fn peers(&self) -> impl Iterator<Item = &Peer> {
        std::iter::once(&self.java)
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Verdict {
    let held = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, held)
        .await
        .map_err(|_| format!("never came: {what}"))
}

pub(crate) fn ensure(condition: bool, seen: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(seen()) }
}

pub(crate) fn says<T>(what: &str, result: Result<T, LockError>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// That it cannot be had now.
pub(crate) fn is_taken<T: std::fmt::Debug>(result: Result<T, LockError>) -> Verdict {
    match result {
        Err(LockError::Taken { .. }) => Ok(()),
        other => Err(format!("the others have it, and ours came to {other:?}")),
    }
}

/// Waits for a lock in a task of its own.
pub(crate) fn waiting(
    lock: impl Lock + 'static,
) -> JoinHandle<Result<(Guard, Instant), LockError>> {
    tokio::spawn(async move { Ok((lock.acquire(SOON).await?, Instant::now())) })
}

/// That ours is woken by Java's message, and not by the look that it takes every half second. `round` makes one of ours
/// wait, frees what it waits for, and says how long it then took: where `told` as Java frees it, else behind everybody's
/// back. The rounds without a message are what a waiter that heard nothing would take: the ones with a message must be
/// several times as fast.
pub(crate) async fn woken_by_the_message(
    round: impl AsyncFn(usize, bool) -> Result<Duration, String>,
) -> Verdict {
    const ROUNDS: usize = 7;
    const TIMES: u32 = 4;
    let (mut told, mut untold) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        told.push(round(2 * number, true).await?);
        untold.push(round(2 * number + 1, false).await?);
    }
    let median = |mut waits: Vec<Duration>| {
        waits.sort();
        waits[ROUNDS / 2]
    };
    let (told, untold) = (median(told), median(untold));
    ensure(told * TIMES < untold, || {
        format!("{told:?} with a message, {untold:?} without one")
    })
}
