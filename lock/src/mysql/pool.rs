//! A pool that takes a connection back only if it is marked as clean.
//!
//! A future can be dropped at any `await`: between `BEGIN` and `COMMIT`, or while an answer is on its way. Returning
//! such a connection would hand an open transaction and its row locks to the next user. So only [`Conn::done`] returns
//! a connection; a dropped one is closed and killed on the server, which rolls back at once, even while it waits for a
//! row lock. sqlx's own pool pings on each release; this one pings only what was idle for a second.
//!
//! Next to read: `failure.rs`, then `connection_id.rs`.

use super::{
    connection_id::{ConnectionId, connection_id_and_host},
    failure::{
        CONNECTION_KILLED_ERRORS, NOT_WRITABLE_ERRORS, PoolExhausted, SERVER, StatementFailure, has_error_number, is_contention,
        is_exhausted, no_answer_error, to_lock_error,
    },
};
use crate::{
    LockError, LockObserver, Owner, Process, deadline,
    events::Observer,
    local::ByType,
    tasks::{self, Tasks},
    time_left,
};
use deadpool::managed::{self, Metrics, Object, Pool, PoolError, RecycleResult, Timeouts};
use futures::future::BoxFuture;
use sqlx::{ConnectOptions, Connection, Executor, MySqlConnection, mysql::MySqlConnectOptions};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    time::{Instant, error::Elapsed, timeout, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

/// The longest time that connecting may take, over all servers together.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that was idle for longer is pinged before use: the server, or a proxy, closes idle ones.
const MAX_UNCHECKED_IDLE: Duration = Duration::from_secs(1);

/// The number of the error for an unknown variable.
const UNKNOWN_VARIABLE_ERROR: u16 = 1193;

/// How to reach MySQL or MariaDB, and with how many connections.
///
/// ```
/// # use oversell_lock::mysql::MySqlOptions;
/// let url = "mysql://shop:secret@127.0.0.1/shop?ssl-mode=VERIFY_CA&ssl-ca=ca.pem";
/// let options = MySqlOptions::new(url).connections(20);
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct MySqlOptions {
    /// `None` for an invalid address.
    servers: Vec<Option<MySqlConnectOptions>>,
    connections: usize,
    process: Process,
    variables: Vec<String>,
    observer: Observer,
    runtime: Option<Handle>,
}

/// Starts from sqlx's own options, for what an address cannot say.
///
/// ```
/// # use oversell_lock::mysql::MySqlOptions;
/// let server = sqlx::mysql::MySqlConnectOptions::new()
///     .socket("/run/mysqld/mysqld.sock")
///     .database("shop");
/// let options = MySqlOptions::from(server);
/// ```
impl From<MySqlConnectOptions> for MySqlOptions {
    fn from(server: MySqlConnectOptions) -> Self {
        Self::to_servers(vec![Some(server)])
    }
}

impl MySqlOptions {
    /// Starts from `mysql://user[:password]@host[:port]/database`, and after a `?` what sqlx takes, as `ssl-mode`,
    /// `ssl-ca`, `ssl-cert` and `ssl-key` (which need the feature `tls`); 10 connections, a process of its own.
    ///
    /// **One address is one server.** An abandoned connection is ended by a second one (`KILL`). Behind a balancer that
    /// leads the second to another server, the statement continues, and an abandoned insert may still be done: name the
    /// nodes themselves ([`of`](Self::of)). A connection is known by its number and its client's address, which a
    /// socket does not have: there, after a restart of the server, the number may be another's.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self::of([url])
    }

    /// Starts from the addresses of the nodes of one cluster. Each new connection tries them in order, and takes the
    /// first that answers, is part of its cluster and accepts writes of this user; it stays with that node.
    ///
    /// ```
    /// # use oversell_lock::mysql::MySqlOptions;
    /// let nodes = ["mysql://shop@10.0.0.1/shop", "mysql://shop@10.0.0.2/shop"];
    /// let options = MySqlOptions::of(nodes);
    /// ```
    #[must_use]
    pub fn of(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let server = |url: &str| {
            let server = MySqlConnectOptions::from_str(url).ok();
            server.filter(|_| url.starts_with("mysql://"))
        };
        let urls = urls.into_iter();
        Self::to_servers(urls.map(|url| server(&url.into())).collect())
    }

    /// The defaults, with these servers; `None` is an invalid address, which is reported when the pool is made.
    fn to_servers(servers: Vec<Option<MySqlConnectOptions>>) -> Self {
        Self {
            servers,
            connections: 10,
            process: Process::new(),
            // A lock's row is committed by the statement that writes it, whatever the server's default.
            variables: vec!["SET SESSION autocommit = 1".into()],
            observer: Observer::default(),
            runtime: None,
        }
    }

    /// Sets the most connections, 1 or more. A waiter has none, but acquiring and releasing need one. If all are in use, a
    /// renewal uses one more that is kept for renewals, so that a lease is not lost.
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// Sets the process that owners are named after.
    #[must_use]
    pub fn process(self, process: Process) -> Self {
        Self { process, ..self }
    }

    /// Sets the observer of the locks, for metrics and logs.
    #[must_use]
    pub fn observer(self, observer: impl LockObserver) -> Self {
        let observer = Observer::new(observer);
        Self { observer, ..self }
    }

    /// Sets the tokio runtime of the pool's connections and tasks, instead of the one in which the pool is made. Its I/O and
    /// time drivers must be enabled.
    #[must_use]
    pub fn runtime(self, runtime: Handle) -> Self {
        let runtime = Some(runtime);
        Self { runtime, ..self }
    }

    /// Sets one more variable of each new session, as `innodb_snapshot_isolation = OFF`. A server that does not know the
    /// variable is used without it.
    #[must_use]
    pub fn session_variable(mut self, assignment: &str) -> Self {
        self.variables.push(format!("SET SESSION {assignment}"));
        self
    }
}

/// The address may hold a password, so it is not shown.
impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions").field("connections", &self.connections).finish_non_exhaustive()
    }
}

/// Makes the connections of a pool, and takes them back without a check, because only clean ones come back.
#[derive(Debug)]
struct ConnectionManager {
    servers: Arc<ServerList>,
    /// The pool's runtime: a connection ends with the runtime in which it is made.
    runtime: Handle,
}

/// The servers in order of preference, and the settings of each new session.
#[derive(Debug)]
struct ServerList {
    servers: Vec<Arc<MySqlConnectOptions>>,
    variables: Vec<String>,
}

/// A connection, and its identity on the server.
struct PooledConnection {
    connection: MySqlConnection,
    server: Arc<MySqlConnectOptions>,
    id: i64,
    host: Arc<str>,
    idle_since: Instant,
    /// See [`Conn::close_when_done_flag`].
    close_when_done_flag: Arc<AtomicBool>,
}

impl managed::Manager for ConnectionManager {
    type Type = PooledConnection;
    type Error = sqlx::Error;

    /// Connects in the pool's runtime.
    async fn create(&self) -> Result<PooledConnection, sqlx::Error> {
        let servers = Arc::clone(&self.servers);
        let making = self.runtime.spawn(async move { servers.connect().await });
        AbortOnDropHandle::new(making).await.unwrap_or_else(|stopped| Err(sqlx::Error::Io(std::io::Error::other(stopped))))
    }

    async fn recycle(&self, _: &mut PooledConnection, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

impl ServerList {
    /// Connects to the first usable server, in their order. Each has an equal part of [`CONNECT_TIMEOUT`], so that a silent one
    /// does not use up all.
    async fn connect(&self) -> Result<PooledConnection, sqlx::Error> {
        let share = CONNECT_TIMEOUT / u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        let mut made = Err(sqlx::Error::Io(std::io::ErrorKind::NotFound.into()));
        for server in &self.servers {
            let late = |_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()));
            made = timeout(share, self.open(server)).await.unwrap_or_else(late);
            if made.is_ok() {
                break;
            }
        }
        made
    }

    /// Opens a connection and sets its variables; if there are several servers, refuses one that takes no writes. A restarted
    /// server gives the same ids again, so id and HOST, which has the client's port, together name this connection.
    async fn open(&self, server: &Arc<MySqlConnectOptions>) -> Result<PooledConnection, sqlx::Error> {
        let mut connection = MySqlConnection::connect_with(server).await?;
        let own = connection_id_and_host(&mut connection, None).await?;
        let (id, host) = own.ok_or(sqlx::Error::RowNotFound)?;
        if self.servers.len() > 1 {
            // A Galera node without its cluster refuses this, but still answers from its own tables.
            connection.execute("SELECT 1").await?;
            ask_for_writes(&mut connection).await?;
        }
        for variable in &self.variables {
            match connection.execute(variable.as_str()).await {
                Ok(_) => {}
                Err(sqlx::Error::Database(e)) if has_error_number(&*e, &[UNKNOWN_VARIABLE_ERROR]) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(PooledConnection {
            connection,
            server: Arc::clone(server),
            id,
            host: host.into(),
            idle_since: Instant::now(),
            close_when_done_flag: Arc::default(),
        })
    }
}

/// Fails if this user may not write here: a read-only server refuses (1290), and nothing is changed. No transaction may be open.
async fn ask_for_writes(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    connection.execute("START TRANSACTION READ WRITE").await?;
    connection.execute("ROLLBACK").await?;
    Ok(())
}

/// A pool of MySQL or MariaDB connections. Cloning it is cheap.
///
/// # What breaks it
///
/// A tokio runtime that does not run, as a `current_thread` one outside `block_on`: its connections and tasks are in the
/// runtime in which it was made, or that its options name. Nothing is taken, renewed or released meanwhile, and a wait does
/// not end, whatever its limit.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, mysql::TablePool};
/// # use std::time::Duration;
/// # async fn example() -> Result<(), LockError> {
/// let pool = TablePool::connect("mysql://shop:secret@127.0.0.1/shop").await?;
/// let mut conn = pool.conn(Duration::from_secs(5)).await?;
/// // What it takes is a `sqlx::MySqlConnection`.
/// // It goes back to the pool only when it is said to be clean.
/// conn.done();
/// pool.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TablePool(Arc<PoolState>);

/// What all clones of one pool share: its connections, the state of its locks, and its tasks.
struct PoolState {
    connections: Pool<ConnectionManager>,
    /// One connection for renewals, which is made when the others are all in use; after `close` it serves deletions.
    renewals: Pool<ConnectionManager>,
    shared: ByType,
    process: Process,
    observer: Observer,
    tasks: Tasks,
}

/// A connection that is closed, and killed on the server, unless it is returned by [`done`](Conn::done).
#[must_use = "a connection that is dropped without `done` is closed"]
pub struct Conn(Option<Object<ConnectionManager>>, TablePool);

impl TablePool {
    /// Makes a pool of at most 10 connections to `url`, and makes the first one at once, so that an unreachable server
    /// or a refused login is reported here.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`LockError::Unavailable`] if the server does not answer, [`LockError::Refused`] if it
    /// refuses the login.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn connect(url: impl Into<String>) -> Result<Self, LockError> {
        let pool = Self::new(MySqlOptions::new(url))?;
        pool.conn(CONNECT_TIMEOUT).await?.done();
        Ok(pool)
    }

    /// Makes a pool that connects on first use. Its connections and tasks live in the tokio runtime in which it is
    /// made, or that [`MySqlOptions::runtime`] names; locks may be used in any runtime.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] if the address is invalid, there are to be no connections, or there is no runtime.
    pub fn new(options: MySqlOptions) -> Result<Self, LockError> {
        let invalid = |name: &str, rule| LockError::invalid(name, rule);
        // The address may hold a password, so it is not repeated.
        let rule = "must be mysql://user[:password]@host[:port]/database";
        let servers = options.servers.into_iter();
        let servers: Option<Vec<_>> = servers.map(|server| Some(Arc::new(server?.disable_statement_logging()))).collect();
        let servers = servers.filter(|servers| !servers.is_empty());
        let servers = servers.ok_or_else(|| invalid("url", rule))?;
        if options.connections == 0 {
            return Err(invalid("connections", "must be 1 or more"));
        }
        let tasks = Tasks::in_runtime(options.runtime)?;
        let variables = options.variables;
        let list = Arc::new(ServerList { servers, variables });
        let pool = |max_size| {
            let connections = ConnectionManager { servers: Arc::clone(&list), runtime: tasks.runtime().clone() };
            let pool = Pool::builder(connections).max_size(max_size);
            let pool = pool.runtime(deadpool::Runtime::Tokio1).build();
            pool.map_err(|e| LockError::unavailable(SERVER, e))
        };
        Ok(Self(Arc::new(PoolState {
            connections: pool(options.connections)?,
            renewals: pool(1)?,
            shared: ByType::default(),
            process: options.process,
            observer: options.observer,
            tasks,
        })))
    }

    /// Makes a new owner, to take a re-entrant lock with.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.process.owner()
    }

    /// Gets a connection, waiting at most `wait` for a free one, and 3 s for a new one. One that was idle for a second
    /// is pinged first.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if none could be made, all were in use for that long ([`PoolExhausted`]), or the pool is
    /// closed; [`LockError::Refused`] if the server refuses the login.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is taken before it completes.
    pub async fn conn(&self, wait: Duration) -> Result<Conn, LockError> {
        let end = deadline(wait) + CONNECT_TIMEOUT;
        self.get_conn_from(&self.0.connections, wait, end).await
    }

    /// Gets a connection of this `pool` that is free within `wait` and answers by `end`. One that does not answer a ping is
    /// dropped with all idle ones, and the next is tried.
    async fn get_conn_from(&self, pool: &Pool<ConnectionManager>, wait: Duration, end: Instant) -> Result<Conn, LockError> {
        let free = deadline(wait);
        loop {
            let timeouts =
                Timeouts { wait: Some(time_left(free)), create: Some(time_left(end).min(CONNECT_TIMEOUT)), recycle: None };
            let mut conn = match pool.timeout_get(&timeouts).await {
                Ok(object) => Conn(Some(object), self.clone()),
                Err(PoolError::Backend(e)) => return Err(to_lock_error(e)),
                Err(PoolError::Closed) => return Err(tasks::closed_error(SERVER)),
                Err(PoolError::Timeout(managed::TimeoutType::Wait)) => {
                    let exhausted = PoolExhausted { waited: wait };
                    return Err(LockError::unavailable(SERVER, exhausted));
                }
                Err(e) => return Err(LockError::unavailable(SERVER, e)),
            };
            if conn.was_used_recently() || matches!(timeout_at(end, conn.ping()).await, Ok(Ok(()))) {
                return Ok(conn);
            }
            drop(conn);
            self.forget_idle();
        }
    }

    /// Runs `statement` on a connection of the pool, within `bound` altogether. It must be a transaction by itself: if
    /// the server ends it because of others, it has changed nothing, and is repeated at once, until `bound` is over.
    ///
    /// # Cancel safety
    ///
    /// The statement may have been carried out; its connection is closed and killed.
    pub(super) async fn run_statement<T>(
        &self,
        bound: Duration,
        statement: impl Fn(&mut MySqlConnection) -> BoxFuture<'_, Result<T, sqlx::Error>>,
    ) -> Result<T, StatementFailure> {
        let end = deadline(bound);
        let conn = self.get_conn_from(&self.0.connections, bound, end).await;
        self.run_statement_on(conn, end, statement).await
    }

    /// As [`run_statement`](Self::run_statement), but for a keeper by the connection for renewals if all others are in use.
    ///
    /// # Cancel safety
    ///
    /// As [`run_statement`](Self::run_statement).
    pub(super) async fn run_renewal<T>(
        &self,
        is_by_keeper: bool,
        bound: Duration,
        statement: impl Fn(&mut MySqlConnection) -> BoxFuture<'_, Result<T, sqlx::Error>>,
    ) -> Result<T, StatementFailure> {
        if !is_by_keeper {
            return self.run_statement(bound, statement).await;
        }
        let end = deadline(bound);
        let mut conn = self.get_conn_from(&self.0.connections, Duration::ZERO, end).await;
        if conn.as_ref().is_err_and(is_exhausted) {
            conn = self.get_conn_from(&self.0.renewals, bound, end).await;
        }
        self.run_statement_on(conn, end, statement).await
    }

    /// Runs `statement` within `bound`, again each time the server ends it because of others. After the pool was closed it takes
    /// the connection for renewals, since late holders still delete what they had.
    ///
    /// # Cancel safety
    ///
    /// As [`run_statement`](Self::run_statement).
    pub(super) async fn run_deletion<T>(
        &self,
        bound: Duration,
        statement: impl Fn(&mut MySqlConnection) -> BoxFuture<'_, Result<T, sqlx::Error>>,
    ) -> Result<T, StatementFailure> {
        let end = deadline(bound);
        let pool = if self.0.connections.is_closed() { &self.0.renewals } else { &self.0.connections };
        let conn = self.get_conn_from(pool, bound, end).await;
        self.run_statement_on(conn, end, statement).await
    }

    /// Runs `statement` on this connection until `end`, again each time the server ends it because of others. `Unsent` if `conn`
    /// is an error.
    async fn run_statement_on<T>(
        &self,
        conn: Result<Conn, LockError>,
        end: Instant,
        statement: impl Fn(&mut MySqlConnection) -> BoxFuture<'_, Result<T, sqlx::Error>>,
    ) -> Result<T, StatementFailure> {
        let mut conn = conn.map_err(StatementFailure::Unsent)?;
        let answer = timeout_at(end, async {
            loop {
                match statement(&mut conn).await {
                    Err(sqlx::Error::Database(error)) if is_contention(&*error) => {}
                    answer => return answer,
                }
            }
        })
        .await;
        self.classify_answer(conn, answer)
    }

    /// Classifies an answer, and returns the connection to the pool if the server can be asked more over it; otherwise closes
    /// it and every idle connection, which are probably broken too.
    pub(super) fn classify_answer<T>(
        &self,
        conn: Conn,
        answer: Result<Result<T, sqlx::Error>, Elapsed>,
    ) -> Result<T, StatementFailure> {
        let failure = match answer {
            Ok(Ok(done)) => {
                conn.done();
                return Ok(done);
            }
            Ok(Err(sqlx::Error::Database(error))) if !has_error_number(&*error, &CONNECTION_KILLED_ERRORS) => {
                if !has_error_number(&*error, &NOT_WRITABLE_ERRORS) {
                    conn.done();
                    return Err(StatementFailure::Answered(error));
                }
                StatementFailure::Answered(error)
            }
            Ok(Err(error)) => StatementFailure::Unanswered(to_lock_error(error)),
            Err(_) => StatementFailure::Unanswered(no_answer_error()),
        };
        // Connections of the same age are probably broken too.
        drop(conn);
        self.forget_idle();
        Err(failure)
    }

    /// Drops every idle connection: after one was found dead, the others probably are too.
    pub fn forget_idle(&self) {
        for pool in [&self.0.connections, &self.0.renewals] {
            pool.retain(|_, _| false);
        }
    }

    /// Returns how many connections there are, without the one for renewals, and how many of them are idle.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let status = self.0.connections.status();
        (status.size, status.available)
    }

    /// Ends the use of locks, as `close` of every client does. From the call on, waiters and later calls get
    /// [`LockError::Unavailable`]. It waits, 3 s at most, until every hold is released. Holders that are left are then told
    /// that their lock is lost, and nothing is renewed: their rows go when they release or drop their guards, or else with the
    /// lease. Idle connections are closed, and [`conn`](Self::conn) fails.
    ///
    /// # Cancel safety
    ///
    /// Safe: it may be called again.
    pub async fn close(&self) {
        self.0.tasks.close(SERVER).await;
        self.0.connections.close();
        self.forget_idle();
    }

    /// Returns the result of `future`, or an error once the pool is being closed.
    ///
    /// # Cancel safety
    ///
    /// As that of `future`.
    pub(super) async fn while_open<T>(&self, future: impl Future<Output = Result<T, LockError>>) -> Result<T, LockError> {
        self.0.tasks.while_open(SERVER, future).await
    }

    /// Completes once the pool is closed and the time for releases is over: what is still held is lost.
    pub(super) async fn wait_until_closed(&self) {
        self.0.tasks.wait_until_closed().await;
    }

    pub(super) fn observer(&self) -> &Observer {
        &self.0.observer
    }

    /// The shared state of this pool's locks, by type.
    pub(super) fn shared(&self) -> &ByType {
        &self.0.shared
    }

    /// The tasks that [`close`](Self::close) waits for.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }
}

impl fmt::Debug for TablePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TablePool").field(&self.counts()).finish()
    }
}

/// The panic's message if a [`Conn`] had no connection: why it always has one.
const CONN_IS_PRESENT: &str = "only `done` and `drop` empty it, and both consume it";

impl Conn {
    /// Puts the connection back into the pool: the caller has no statement under way on it and no transaction open. It is
    /// closed instead if its [flag](Self::close_when_done_flag) is set or the pool is closed.
    pub fn done(mut self) {
        if self.close_when_done_flag().load(Ordering::Relaxed) || self.1.0.connections.is_closed() {
            return;
        }
        if let Some(mut link) = self.0.take() {
            link.idle_since = Instant::now();
        }
    }

    /// Returns the connection's number on the server, which `KILL QUERY` takes.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.pooled().id
    }

    /// Returns the options for another connection to the same server: to the same node of a cluster.
    #[must_use]
    pub fn server(&self) -> Arc<MySqlConnectOptions> {
        Arc::clone(&self.pooled().server)
    }

    /// Returns a flag for the caller to set. While it is set, [`done`](Self::done) closes the connection: the caller sets it
    /// while something may still happen to the connection, such as a `KILL QUERY` without an answer.
    #[must_use]
    pub fn close_when_done_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.pooled().close_when_done_flag)
    }

    /// Checks whether the server accepts writes of this user, without changing anything. No transaction may be open.
    ///
    /// # Errors
    ///
    /// The server's error, 1290 if it is read-only, or that of the connection.
    ///
    /// # Cancel safety
    ///
    /// Drop the connection: a transaction may be open.
    pub async fn ask_for_writes(&mut self) -> Result<(), sqlx::Error> {
        ask_for_writes(self).await
    }

    /// Returns its identity on the server, by which another connection can kill it.
    pub(super) fn connection_id(&self) -> ConnectionId {
        let link = self.pooled();
        ConnectionId::new(self.server(), link.id, Arc::clone(&link.host))
    }

    fn pooled(&self) -> &PooledConnection {
        self.0.as_ref().expect(CONN_IS_PRESENT)
    }

    /// Whether it was idle for less than [`MAX_UNCHECKED_IDLE`], and so needs no ping.
    fn was_used_recently(&self) -> bool {
        self.pooled().idle_since.elapsed() < MAX_UNCHECKED_IDLE
    }
}

impl Drop for Conn {
    /// Closes the connection and kills it on the server in the background, unless [`done`](Conn::done) has taken it.
    fn drop(&mut self) {
        if self.0.is_none() {
            return;
        }
        let connection_id = self.connection_id();
        drop(self.0.take().map(Object::take));
        self.1.tasks().spawn(async move {
            if let Err(error) = connection_id.kill().await {
                tracing::debug!(%error, ?connection_id, "an abandoned connection was not killed");
            }
        });
    }
}

impl Deref for Conn {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        &self.pooled().connection
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        &mut self.0.as_mut().expect(CONN_IS_PRESENT).connection
    }
}
