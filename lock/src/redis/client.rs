//! One process's access to Redis: a connection for commands, one for wake-ups, and the shared state of its handles.
//!
//! Connections are made on first use and again after a break. A dead connection that was not closed is found by TCP
//! keep-alive, or because a command got no answer.
//!
//! Next to read: `failure.rs`, `servers.rs`.

use super::{
    connection::Connection,
    failure::{CommandFailure, SERVER, is_by_moving_slot, to_lock_error},
    keys::in_braces,
    options::RedisOptions,
    scripts::{self, NotifyingScript, Script, ScriptCall},
    servers::Servers,
};
use crate::{
    Holder, Lease, LockError, Owner,
    events::Observer,
    local::ByType,
    reentry::Reentry,
    registry::{Registration, Registry},
    tasks::Tasks,
};
use redis::{
    AsyncCommands, FromRedisValue, RedisResult,
    aio::{ConnectionLike, MultiplexedConnection},
};
use std::{any::Any, future::Future, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle},
};

/// One process's client for all locks in one Redis: a single server, the primary that Sentinels name
/// ([`RedisOptions::sentinels`]), or a Redis Cluster ([`RedisOptions::cluster`]). Cloning it is cheap.
///
/// # What breaks it
///
/// A tokio runtime that does not run, as a `current_thread` one outside `block_on`: its connections and tasks are in the
/// runtime in which the client was made, or that its options name. Nothing is taken, renewed or released meanwhile, and a wait
/// does not end, whatever its limit.
///
/// # Example
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
pub struct RedisClient(Arc<ClientState>);

/// What all clones of one client share: its options, servers and connection, the state of its locks, and its tasks.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) options: RedisOptions,
    pub(super) servers: Servers,
    connection: Connection,
    /// Notified when a connection is closed or the primary moves.
    disconnects: watch::Sender<()>,
    shared: ByType,
    pub(super) tasks: Tasks,
}

impl RedisClient {
    /// Makes a client of the Redis at `url`, with the defaults of [`RedisOptions`]; returns once Redis has answered.
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
    /// [`LockError::Invalid`] as for [`new`](Self::new), [`LockError::Refused`] if user or password are wrong,
    /// [`LockError::Unavailable`] if no server answers.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn connect(url: impl Into<String>) -> Result<Self, LockError> {
        let redis = Self::new(RedisOptions::new(url))?;
        redis::cmd("PING").exec_async(&mut redis.connection()).await.map_err(to_lock_error)?;
        Ok(redis)
    }

    /// Makes a client that connects on first use. Its connections and tasks live in the tokio runtime in which it is made, or
    /// that [`RedisOptions::runtime`] names.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] if an option breaks its rule, or outside a runtime.
    pub fn new(options: RedisOptions) -> Result<Self, LockError> {
        Self::build(options, None)
    }

    /// Makes a client whose commands and scripts use a connection that the program already has, a `ConnectionManager`
    /// for example, which is cloned. Wake-ups use a connection of their own to the same server, made from the options.
    ///
    /// The connection must never repeat a command by itself, as the `redis` crate's for a cluster does unless told otherwise: a
    /// lock would be taken twice; see [`RedisOptions::cluster`]. If it is closed, losses are noticed at the next renewal.
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
        let users_own = Connection::over_users_connection(connection, options.timeout);
        Self::build(options, Some(users_own))
    }

    /// Checks the options and makes the client, not yet connected; its commands use the connection `users_own`, if there is one.
    fn build(options: RedisOptions, users_own: Option<Connection>) -> Result<Self, LockError> {
        let tasks = Tasks::in_runtime(options.runtime.clone())?;
        let disconnects = watch::Sender::new(());
        let servers = Servers::new(&options, tasks.runtime(), &disconnects)?;
        let connection = users_own.unwrap_or_else(|| servers.connection());
        Ok(Self(Arc::new(ClientState { options, servers, connection, disconnects, shared: ByType::default(), tasks })))
    }

    /// Returns the connection for plain commands and scripts. It is shared, so never send a blocking command or WATCH.
    /// After a break the next command connects again, except over the program's own one ([`over`](Self::over)). In a cluster
    /// each command goes to the node that has its first key, one without a key to the node of the command before it, and a
    /// pipeline to the node of its first key.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.0.connection.clone()
    }

    /// Makes a connection for the caller alone, for WATCH and blocking commands. It leads to the present primary,
    /// speaks RESP3, and is not made again: if it breaks, or leads to a replica by now, make another one. In a cluster
    /// it leads to the node that has the slot of the prefix, so give that a name in braces.
    ///
    /// # Errors
    ///
    /// Why the connection could not be made.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn own_connection(&self) -> RedisResult<MultiplexedConnection> {
        let node = match &self.0.servers {
            Servers::One(node) => Arc::clone(node),
            Servers::Cluster(cluster) => cluster.node_for_commands_without_key().await?,
        };
        let primary = &node.primary;
        Ok(primary.connect(&primary.config()).await?.0)
    }

    /// Makes a new owner, to take a re-entrant lock with.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.options.process.owner()
    }

    /// Ends the use of locks, as `close` of every client does. From the call on, waiters and later acquires get
    /// [`LockError::Unavailable`]. It waits, 3 s at most, until every hold is released. Holders that are left are then told
    /// that their lock is lost, and nothing is renewed: what they have goes when they release or drop their guards, or else
    /// with the lease. The [`connection`](Self::connection) stays usable.
    ///
    /// # Cancel safety
    ///
    /// Safe: it may be called again.
    pub async fn close(&self) {
        self.0.tasks.close(SERVER).await;
    }

    /// Returns the result of `future`, or an error once the client is being closed.
    ///
    /// # Cancel safety
    ///
    /// As that of `future`.
    pub(super) async fn while_open<T>(&self, future: impl Future<Output = Result<T, LockError>>) -> Result<T, LockError> {
        self.0.tasks.while_open(SERVER, future).await
    }

    /// Completes once the client is closed and the time for releases is over: what is still held is lost.
    pub(super) async fn wait_until_closed(&self) {
        self.0.tasks.wait_until_closed().await;
    }

    pub(super) fn observer(&self) -> &Observer {
        &self.0.options.observer
    }

    pub(super) fn state(&self) -> &ClientState {
        &self.0
    }

    /// Returns the state of type `T` that this client's handles on `name` share, and makes it for the first of them.
    pub(super) fn shared<T: Any + Send + Sync>(&self, name: &Arc<str>, make: impl FnOnce(Registration) -> T) -> Arc<T> {
        self.0.shared.of::<Registry<Arc<str>, T>>().get_or_make(name, make)
    }

    /// How many names this client uses whose shared state is a `T`.
    pub(super) fn names_in_use<T: Any + Send + Sync>(&self) -> usize {
        self.0.shared.of::<Registry<Arc<str>, T>>().len()
    }

    /// The holds of named owners, for the kind of lock whose hold is an `H`.
    pub(super) fn reentry<H: Any + Send + Sync>(&self) -> Arc<Reentry<H>> {
        self.0.shared.of()
    }

    /// The key of an object, with the configured prefix.
    pub(super) fn key(&self, name: &str) -> Arc<str> {
        match &*self.0.options.prefix {
            "" => name.into(),
            prefix => [prefix, name].concat().into(),
        }
    }

    /// Fails with [`LockError::Invalid`] for the key of an object without a name: all programs that forgot theirs would share it.
    pub(super) fn check_name(&self, key: &str) -> Result<(), LockError> {
        if key.len() > self.0.options.prefix.len() {
            return Ok(());
        }
        Err(LockError::invalid("name", "must not be empty"))
    }

    /// Returns the default lease of a lock: that of the options, renewed while its holder lives.
    pub(super) fn lease(&self) -> Lease {
        Lease::Watchdog(self.0.options.lease)
    }

    /// Returns a receiver that is notified when a connection is closed or the primary moves: data may have been lost.
    pub(super) fn disconnects(&self) -> watch::Receiver<()> {
        self.0.disconnects.subscribe()
    }

    /// Spawns a task that [`close`](Self::close) waits for, from inside or outside the runtime.
    pub(super) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.tasks.spawn(task)
    }

    /// Whether a waiter goes on after this error: while its slot is moved; and if the options say so, for an unavailable Redis,
    /// but not if its task panicked or its runtime has ended.
    pub(super) fn keeps_waiting_after(&self, error: &LockError) -> bool {
        is_by_moving_slot(error)
            || self.0.options.waits_while_unavailable
                && matches!(error, LockError::Unavailable { reason, .. } if !reason.is::<JoinError>())
    }

    /// Reads the number in this key; 0 if there is none.
    pub(super) async fn read_number<T: FromRedisValue + Default>(&self, key: &str) -> Result<T, LockError> {
        let number: Option<T> = self.connection().get(key).await.map_err(to_lock_error)?;
        Ok(number.unwrap_or_default())
    }

    /// Chooses the version of a script for this client's servers.
    pub(super) fn script<'a>(&self, script: &'a NotifyingScript) -> &'a Script {
        script.of(self.0.servers.is_cluster())
    }

    /// Runs a script, with the client's time limit for the answer.
    pub(super) async fn run_script<T: FromRedisValue>(&self, call: &ScriptCall) -> Result<T, CommandFailure> {
        self.run_script_within(call, None).await
    }

    /// Runs a script. A connection without an answer within `limit` (`None`: the client's time limit) counts as broken, and
    /// the next command makes another one.
    pub(super) async fn run_script_within<T: FromRedisValue>(
        &self,
        call: &ScriptCall,
        limit: Option<Duration>,
    ) -> Result<T, CommandFailure> {
        let mut connection = self.connection().with_answer_limit(limit);
        let answer = call.send(&mut connection).await;
        answer.map_err(|error| CommandFailure::of(error, connection.has_sent()))
    }

    /// Runs `holders.lua`: the holders, of a read-write lock readers and writer alike, each with the rest of its lease.
    pub(super) async fn holders(&self, key: &str) -> Result<Vec<Holder>, LockError> {
        let script = scripts::HOLDERS.call([key]).arg(in_braces(key));
        let shown: Vec<(String, i64)> = self.run_script(&script).await?;
        let holder = |(id, millis)| Holder { id, remaining: u64::try_from(millis).ok().map(Duration::from_millis) };
        Ok(shown.into_iter().map(holder).collect())
    }
}
