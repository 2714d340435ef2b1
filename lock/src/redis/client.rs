//! One process's access to Redis: a connection for commands, one for wake-ups, and what its handles share.
//!
//! Nothing connects before it is used, and a connection that is broken is made again. One that is dead and not closed is
//! found by the kernel's probes, or because a command had no answer.
//!
//! Next to read: `failure.rs`, `connection.rs`.

use super::{
    connection::Connection,
    failure::{Failure, failed},
    options::RedisOptions,
    primary::Primary,
    scripts,
    wakeups::Wakeups,
};
use crate::{
    Holder, Lease, LockError, Owner,
    local::ByType,
    registry::{Registration, Registry},
    tasks::Tasks,
};
use parking_lot::Mutex;
use redis::{
    AsyncCommands, FromRedisValue, RedisResult, ScriptInvocation,
    aio::{ConnectionLike, MultiplexedConnection},
};
use std::{any::Any, future::Future, sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

/// How long [`RedisClient::close`] waits for what is held to be given back.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// One process's client for all locks in one Redis. Cloning it is cheap.
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example() -> Result<(), LockError> {
/// let redis = RedisClient::connect("redis://127.0.0.1:6379").await?;
/// redis.lock("lock").acquire(Duration::from_secs(5)).await?.release().await?;
/// redis.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisClient(Arc<Inner>);

/// What the handles of one process share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: RedisOptions,
    pub(super) primary: Primary,
    connection: Connection,
    /// Connections for `WAIT` that nobody uses just now.
    pub(super) idle: Arc<Mutex<Vec<MultiplexedConnection>>>,
    /// Told of each connection that was closed.
    disconnects: watch::Sender<()>,
    pub(super) wakeups: Arc<Wakeups>,
    shared: ByType,
    pub(super) tasks: Tasks,
}

impl RedisClient {
    /// Makes a client of the Redis at `url`, with the defaults of [`RedisOptions`]; returns when Redis has answered.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, redis::RedisClient};
    /// # use std::time::Duration;
    /// # async fn example() -> Result<(), LockError> {
    /// let redis = RedisClient::connect("redis://user:password@127.0.0.1:6379").await?;
    /// let guard = redis.lock("door").acquire(Duration::from_secs(5)).await?;
    /// guard.release().await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] as for [`new`](Self::new), [`LockError::Refused`] where user or password are wrong,
    /// [`LockError::Unavailable`] where no server answers.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is left.
    pub async fn connect(url: impl Into<String>) -> Result<Self, LockError> {
        let redis = Self::new(RedisOptions::new(url))?;
        redis::cmd("PING")
            .exec_async(&mut redis.connection())
            .await
            .map_err(failed)?;
        Ok(redis)
    }

    /// Makes a client that connects when it is first used. Its connections and tasks live in the tokio runtime in which it is
    /// made: locks may be used in another one, but nothing is taken, renewed or given back while that first one does not run, as a
    /// `current_thread` runtime outside of `block_on`.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] where an option breaks its rule, or there is no runtime.
    pub fn new(options: RedisOptions) -> Result<Self, LockError> {
        Self::made(options, None)
    }

    /// Makes a client whose commands and scripts go over a connection that the program has already, a `ConnectionManager`,
    /// say, of which it is a clone. Wake-ups need one of their own, to the same server, which is made by the options.
    ///
    /// The connection must never send a command a second time by itself, as a cluster's does unless it is told not to: a lock
    /// would be taken twice. What is lost when it is closed is noticed at the next renewal.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, redis::{RedisClient, RedisOptions}};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let url = "redis://127.0.0.1:6379";
    /// let shops = redis::Client::open(url)?.get_connection_manager().await?;
    /// let locks = RedisClient::over(shops.clone(), RedisOptions::new(url))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn over(
        connection: impl ConnectionLike + Clone + Send + Sync + 'static,
        options: RedisOptions,
    ) -> Result<Self, LockError> {
        let given = Connection::given(connection, options.timeout);
        Self::made(options, Some(given))
    }

    fn made(options: RedisOptions, given: Option<Connection>) -> Result<Self, LockError> {
        let tasks = Tasks::in_current_runtime()?;
        let runtime = tasks.runtime();
        let disconnects = watch::Sender::new(());
        let primary = options.primary(disconnects.clone())?;
        let wakeups = Wakeups::new(
            primary.clone(),
            &options.process,
            runtime,
            disconnects.clone(),
        );
        let connection = given.unwrap_or_else(|| {
            Connection::new(primary.clone(), runtime.clone(), disconnects.clone())
        });
        Ok(Self(Arc::new(Inner {
            options,
            primary,
            connection,
            idle: Arc::default(),
            disconnects,
            wakeups: Arc::new(wakeups),
            shared: ByType::default(),
            tasks,
        })))
    }

    /// Returns the connection for plain commands and scripts. Never send it a blocking command or WATCH: all share it.
    /// Where it is broken the next command makes it again.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.0.connection.clone()
    }

    /// Makes a connection of the caller's own, for what must not be sent over the shared one: WATCH, blocking commands. It is
    /// made to the primary of this moment, speaks RESP3, and is not made again: where it is broken, or leads to a replica
    /// by now, make another one.
    ///
    /// # Errors
    ///
    /// What the connection could not be made for.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn own_connection(&self) -> RedisResult<MultiplexedConnection> {
        let primary = &self.0.primary;
        Ok(primary.connect(&primary.config()).await?.0)
    }

    /// Makes a new owner, to take a re-entrant lock with.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.options.process.owner()
    }

    /// Waits, 3 s at most, until every hold of this process has been given back. What is still held by then goes with its
    /// lease.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits, and may be called again.
    pub async fn close(&self) {
        if timeout(CLOSE_TIMEOUT, self.0.tasks.ended()).await.is_err() {
            tracing::warn!(
                left = self.0.tasks.len(),
                "closing the redis client under its holders"
            );
        }
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }

    /// What all handles of the object `name` share, made where it is unused.
    pub(super) fn shared<T: Any + Send + Sync>(
        &self,
        name: &str,
        make: impl FnOnce(Registration) -> T,
    ) -> Arc<T> {
        self.0.shared.of::<Registry<String, T>>().of(name, make)
    }

    /// How many names of one kind of object this process uses.
    pub(super) fn used<T: Any + Send + Sync>(&self) -> usize {
        self.0.shared.of::<Registry<String, T>>().len()
    }

    /// What owners hold, of one kind of lock.
    pub(super) fn owned<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        self.0.shared.of()
    }

    /// The key of an object, with the configured prefix.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.0.options.prefix)
    }

    /// The lease of a lock that is given none.
    pub(super) fn lease(&self) -> Lease {
        Lease::Watchdog(self.0.options.lease)
    }

    /// Tells of each connection that was closed: with it a server may have gone, and what it knew.
    pub(super) fn disconnects(&self) -> watch::Receiver<()> {
        self.0.disconnects.subscribe()
    }

    /// Runs a task that [`close`](Self::close) waits for; it may be begun outside of the runtime.
    pub(super) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.tasks.spawn(task)
    }

    /// Runs one script.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Failure> {
        let mut connection = self.connection();
        let answer = script.invoke_async(&mut connection).await;
        answer.map_err(|error| Failure::of(error, connection.has_sent()))
    }

    /// `renew.lua`.
    pub(super) async fn renew(&self, key: &str, lease: Lease, id: Owner) -> Result<bool, Failure> {
        self.run(&renewal(key, lease, id)).await
    }

    /// The number in this key; 0 where there is none.
    pub(super) async fn number<T: FromRedisValue + Default>(
        &self,
        key: &str,
    ) -> Result<T, LockError> {
        let number: Option<T> = self.connection().get(key).await.map_err(failed)?;
        Ok(number.unwrap_or_default())
    }

    /// `holders.lua`.
    pub(super) async fn holders(&self, key: &str) -> Result<Vec<Holder>, LockError> {
        let shown: Vec<(String, i64)> = self
            .run(scripts::HOLDERS.key(key).arg(scripts::in_braces(key)))
            .await?;
        let holder = |(id, millis)| Holder {
            id,
            remaining: u64::try_from(millis).ok().map(Duration::from_millis),
        };
        Ok(shown.into_iter().map(holder).collect())
    }
}

/// `renew.lua`.
pub(super) fn renewal(key: &str, lease: Lease, id: Owner) -> ScriptInvocation<'static> {
    let mut script = scripts::RENEW.key(key);
    script.arg(lease.millis()).arg(id.to_string());
    script
}
