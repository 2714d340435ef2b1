//! One process's access to Redis: a connection for commands, one for wake-ups, and the line of waiters of each lock.
//!
//! Nothing connects before it is used, and a connection that is lost is made again.
//!
//! Next to read: `lock.rs`.

use super::{
    RedisFencedLock, RedisLock, RedisSpinLock, fair_seat::Seats, hold::Hold, lease::Lease, place::Inside,
    read_write::Crossings, script, station::Stations, subscription::Subscription, terms::Terms, wakeups::Wakeups,
};
use crate::{Fence, LockError, Owner, Process, local::Queue};
use parking_lot::Mutex;
use redis::{
    Client, IntoConnectionInfo, ProtocolVersion, RedisError,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::Mutex as AsyncMutex, task::JoinHandle};
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

/// What a try came to.
pub(super) enum Tried {
    /// Taken, with a token where one was drawn.
    Taken(Option<Fence>),
    /// Another has it; its lease runs for so long, or for ever. Of an owner that had it: it has lost it.
    Refused(Option<Duration>),
}

/// What a hand-over came to.
pub(super) enum Handed {
    /// It is the next owner's.
    Done(Option<Fence>),
    /// It was not the owner's any more.
    Lost,
    /// The owner has it more than once.
    HoldsLeft,
}

/// How much of an owner's holds is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    One,
    All,
}

/// What all handles of one lock share in this process: the line of waiters, and the wake-up of its head.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) queue: Arc<Queue<Hold, Terms>>,
    /// Who of this process has it, for who takes it again.
    pub(super) inside: Inside,
    /// Owners whose last command was not answered, until what it may have taken is given back.
    pub(super) returning: Mutex<HashSet<Owner>>,
    /// Owners that are on their way in: another task of one waits for it, and comes in with it.
    entering: Mutex<HashMap<Owner, Weak<AsyncMutex<()>>>>,
    /// Told of each release.
    pub(super) released: Subscription,
    token: String,
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
        let (seats, crossings) = (Seats::default(), Crossings::default());
        let (lines, tasks) = (Mutex::default(), TaskTracker::new());
        Ok(Self(Arc::new(Inner { options, commands, wakeups, stations, seats, crossings, lines, tasks })))
    }

    /// The connection for plain commands and scripts. Never send it a blocking command or WATCH: all share it.
    #[must_use]
    pub fn connection(&self) -> ConnectionManager {
        self.0.commands.clone()
    }

    /// A handle on the lock `name`, each of whose acquires has an owner of its own unless it is given one.
    #[must_use]
    pub fn lock(&self, name: &str) -> RedisLock {
        RedisLock::new(self.clone(), self.line(name))
    }

    /// A handle on the lock `name` that waits by asking again.
    #[must_use]
    pub fn spin_lock(&self, name: &str) -> RedisSpinLock {
        RedisSpinLock::new(self.clone(), self.line(name))
    }

    /// A handle on the lock `name` whose guards have fencing tokens.
    #[must_use]
    pub fn fenced_lock(&self, name: &str) -> RedisFencedLock {
        RedisFencedLock::new(self.clone(), self.line(name))
    }

    /// An owner that nobody had before, to take a re-entrant lock with.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.options.process.owner()
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
            released: Subscription::new(script::lock_channel(&name), &self.0.wakeups),
            token: script::lock_token(&name),
            queue: Arc::default(),
            inside: Inside::default(),
            returning: Mutex::default(),
            entering: Mutex::default(),
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

    /// `acquire.lua`. `again`: the owner has it already.
    pub(super) async fn acquire(&self, line: &Line, terms: &Terms, again: bool) -> Result<Tried, LockError> {
        let mut script = script::ACQUIRE.key(&line.name);
        if terms.fenced {
            script.key(&line.token);
        }
        script.arg(terms.lease.millis()).arg(terms.owner.to_string()).arg(if again {
            script::AGAIN
        } else {
            script::FIRST
        });
        let (taken, n): (bool, i64) = script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))?;
        Ok(if taken {
            Tried::Taken(token(n))
        } else {
            Tried::Refused(u64::try_from(n).ok().map(Duration::from_millis))
        })
    }

    /// `release.lua`: `None` where it was not the owner's, else how many were told (negative: holds are left).
    pub(super) async fn release(&self, line: &Line, terms: &Terms, holds: Holds) -> Result<Option<i64>, LockError> {
        let mut script = script::RELEASE.key(&line.name);
        if !terms.spins {
            script.key(line.released.channel());
        }
        script.arg(terms.owner.to_string()).arg(i32::from(holds == Holds::One));
        script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))
    }

    /// `renew.lua`: whether the lease was renewed.
    pub(super) async fn renew(&self, line: &Line, terms: &Terms) -> Result<bool, LockError> {
        let mut script = script::RENEW.key(&line.name);
        script.arg(terms.lease.millis()).arg(terms.owner.to_string());
        script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))
    }

    /// `hand_over.lua`.
    pub(super) async fn hand_over(&self, line: &Line, owner: Owner, next: &Terms) -> Result<Handed, LockError> {
        let mut script = script::HAND_OVER.key(&line.name);
        if next.fenced {
            script.key(&line.token);
        }
        script.arg(next.lease.millis()).arg(owner.to_string()).arg(next.owner.to_string());
        let code: i64 = script.invoke_async(&mut self.connection()).await.map_err(|e| unavailable(&e))?;
        Ok(match code {
            -2 => Handed::HoldsLeft,
            -1 => Handed::Lost,
            n => Handed::Done(token(n)),
        })
    }

    /// `lift_token.lua`.
    pub(super) async fn lift_token(&self, line: &Line, seen: Fence) -> Result<(), LockError> {
        let mut script = script::LIFT_TOKEN.key(&line.token);
        script.arg(seen.0);
        script.invoke_async::<i64>(&mut self.connection()).await.map(drop).map_err(|e| unavailable(&e))
    }
}

/// Tokens begin at 1.
fn token(n: i64) -> Option<Fence> {
    u64::try_from(n).ok().filter(|n| *n > 0).map(Fence)
}

impl Line {
    /// What an owner's tasks take one after the other while they come in.
    pub(super) fn entrance(&self, owner: Owner) -> Arc<AsyncMutex<()>> {
        let mut entering = self.entering.lock();
        if let Some(entrance) = entering.get(&owner).and_then(Weak::upgrade) {
            return entrance;
        }
        entering.retain(|_, entrance| entrance.strong_count() > 0);
        let entrance = Arc::default();
        entering.insert(owner, Arc::downgrade(&entrance));
        entrance
    }

    /// How many of `told` subscribers are other processes.
    pub(super) fn others(&self, told: i64) -> i64 {
        told - i64::from(self.released.has_begun())
    }
}

pub(super) fn unavailable(error: &RedisError) -> LockError {
    LockError::Unavailable { server: SERVER, reason: error.to_string() }
}
