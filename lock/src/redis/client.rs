//! One process's access to Redis: a connection for commands, one for wake-ups, and the line of waiters of each lock.
//!
//! Nothing connects before it is used, and a connection that is lost is made again.
//!
//! Next to read: `lock.rs`.

use super::{
    RedisLock, fair_seat::Seats, hold::Hold, lease::Lease, read_write::Crossings, script, station::Stations,
    wakeups::Wakeups,
};
use crate::{LockError, Owner, Process, local::Queue};
use parking_lot::Mutex;
use redis::{
    Client, IntoConnectionInfo, ProtocolVersion, RedisError,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::task::TaskTracker;

const SERVER: &str = "redis";
const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_TRIES: usize = 3;

/// How to reach Redis, and how long things take.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// This process: owners are named after it.
    pub process: Process,
    /// `redis://host:port`.
    pub url: String,
    /// Before every key and channel; empty for none.
    pub prefix: String,
    /// The lease of a lock, renewed every third while its holder lives. From 1 s.
    pub lease: Duration,
    /// A command that has no answer by then is given up; it may have run.
    pub timeout: Duration,
}

/// One process's client for all locks in one Redis. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct RedisClient(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: RedisOptions,
    commands: ConnectionManager,
    wakeups: Arc<Wakeups>,
    stations: Stations,
    seats: Seats,
    crossings: Crossings,
    lines: Mutex<HashMap<String, Weak<Line>>>,
    tasks: TaskTracker,
}

/// What all handles of one lock share in this process: the line of waiters, and the wake-up of its head.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) queue: Arc<Queue<Hold>>,
    pub(super) freed: Arc<Notify>,
    channel: String,
    subscribed: AtomicBool,
    wakeups: Arc<Wakeups>,
}

impl RedisClient {
    /// A client that connects when it is first used. Must run inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] where `url` is not a Redis address.
    pub fn new(options: RedisOptions) -> Result<Self, LockError> {
        let info = options.url.as_str().into_connection_info().map_err(|e| unavailable(&e))?;
        // RESP3 tells of a lost connection at once, and carries the wake-ups.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings)).map_err(|e| unavailable(&e))?;
        let config = ConnectionManagerConfig::new()
            .set_min_delay(RECONNECT_FIRST)
            .set_number_of_retries(RECONNECT_TRIES)
            .set_connection_timeout(Some(options.timeout))
            .set_response_timeout(Some(options.timeout));
        let commands = ConnectionManager::new_lazy_with_config(client.clone(), config).map_err(|e| unavailable(&e))?;
        let wakeups = Arc::new(Wakeups::new(client, options.timeout).map_err(|e| unavailable(&e))?);
        let stations = Stations::new(&options, &wakeups);
        let (crossings, lines, seats) = (Crossings::default(), Mutex::default(), Seats::default());
        let tasks = TaskTracker::new();
        Ok(Self(Arc::new(Inner { options, commands, wakeups, stations, seats, crossings, lines, tasks })))
    }

    /// The connection for plain commands and scripts. Never send it a blocking command or WATCH: all share it.
    #[must_use]
    pub fn connection(&self) -> ConnectionManager {
        self.0.commands.clone()
    }

    /// A handle on the lock `name`, each of whose acquires has an owner of its own.
    #[must_use]
    pub fn lock(&self, name: &str) -> RedisLock {
        RedisLock::new(self.clone(), self.line(name))
    }

    /// Waits until every hold of this process has been given back.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits, and may be called again.
    pub async fn close(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn line(&self, name: &str) -> Arc<Line> {
        let name = format!("{}{name}", self.0.options.prefix);
        let mut lines = self.0.lines.lock();
        if let Some(line) = lines.get(&name).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line {
            channel: script::lock_channel(&name),
            queue: Arc::default(),
            freed: Arc::default(),
            subscribed: AtomicBool::new(false),
            wakeups: Arc::clone(&self.0.wakeups),
            name: name.clone(),
        });
        lines.insert(name, Arc::downgrade(&line));
        line
    }

    /// Where this process waits for what is no lock.
    pub(super) fn stations(&self) -> &Stations {
        &self.0.stations
    }

    /// The owners that were named at fair locks.
    pub(super) fn seats(&self) -> &Seats {
        &self.0.seats
    }

    /// Where messages come in.
    pub(super) fn wakeups(&self) -> &Wakeups {
        &self.0.wakeups
    }

    /// Where this process waits for read-write locks.
    pub(super) fn crossings(&self) -> &Crossings {
        &self.0.crossings
    }

    /// An owner that nobody had before.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.options.process.owner()
    }

    /// The lease of a lock that is given none.
    pub(super) fn lease(&self) -> Lease {
        Lease::Watchdog(self.0.options.lease)
    }

    /// Runs a task that [`close`](Self::close) waits for.
    pub(super) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.tasks.spawn(task)
    }

    /// `acquire.lua`: `None` where it was taken, else how long the other's lease still runs (negative: for ever).
    pub(super) async fn acquire(&self, name: &str, owner: Owner) -> Result<Option<i64>, LockError> {
        let mut script = script::ACQUIRE.key(name);
        script.arg(self.lease().millis()).arg(owner.to_string());
        script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))
    }

    /// `release.lua`: `None` where it was not the owner's, else how many were told (negative: holds are left).
    pub(super) async fn release(&self, line: &Line, owner: Owner) -> Result<Option<i64>, LockError> {
        let mut script = script::RELEASE.key(&line.name);
        script.key(&line.channel).arg(self.lease().millis()).arg(owner.to_string());
        script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))
    }

    /// `renew.lua`: whether the lease was renewed.
    pub(super) async fn renew(&self, name: &str, owner: Owner) -> Result<bool, LockError> {
        let mut script = script::RENEW.key(name);
        script.arg(self.lease().millis()).arg(owner.to_string());
        script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))
    }

    /// `hand_over.lua`: whether the lock now is `next`'s. (Holds are never left: an owner of ours holds once.)
    pub(super) async fn hand_over(&self, name: &str, owner: Owner, next: Owner) -> Result<bool, LockError> {
        let mut script = script::HAND_OVER.key(name);
        script.arg(self.lease().millis()).arg(owner.to_string()).arg(next.to_string());
        let code: i64 = script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))?;
        Ok(code == 1)
    }
}

impl Line {
    /// Subscribes to the release of this lock, once; from then on `freed` tells of it.
    pub(super) async fn subscribe(&self) -> bool {
        if self.subscribed.load(Ordering::Acquire) {
            return false;
        }
        self.wakeups.listen(&self.channel, &self.freed);
        if let Err(error) = self.wakeups.subscribe(&self.channel).await {
            // The timed re-check goes on without it.
            tracing::debug!(%error, lock = self.name, "no wake-ups");
            return false;
        }
        self.subscribed.store(true, Ordering::Release);
        true
    }

    /// How many of `told` subscribers are other processes.
    pub(super) fn others(&self, told: i64) -> i64 {
        told - i64::from(self.subscribed.load(Ordering::Acquire))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !*self.subscribed.get_mut() {
            return;
        }
        let (wakeups, channel) = (Arc::clone(&self.wakeups), std::mem::take(&mut self.channel));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = wakeups.unsubscribe(&channel).await {
                    tracing::debug!(%error, channel, "not unsubscribed");
                }
            });
        }
    }
}

pub(super) fn unavailable(error: &RedisError) -> LockError {
    LockError::Unavailable { server: SERVER, reason: error.to_string() }
}
