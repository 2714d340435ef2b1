//! A pool that takes a connection back only when it is marked as clean.
//!
//! A future can be dropped at any `await`: between `BEGIN` and `COMMIT`, or while an answer is on its way. A
//! connection that went back to the pool then would hand an open transaction, and its row locks, to the
//! next user. So the rule is the other way round: [`Conn::done`] puts a connection back, and one that is
//! dropped without it is closed and killed on the server, which rolls back at once, even where it was
//! still waiting for a row lock. sqlx's own pool pings on each release; this one does not.
//!
//! Next to read: `session.rs`.

use super::session::Session;
use crate::{LockError, Owner, Process, local::ByType};
use deadpool::managed::{self, Metrics, Object, Pool, PoolError, RecycleResult, Timeouts};
use sqlx::{
    ConnectOptions, Connection, MySqlConnection,
    error::DatabaseError,
    mysql::{MySqlConnectOptions, MySqlDatabaseError},
};
use std::{
    fmt,
    ops::{Deref, DerefMut},
    str::FromStr,
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};
use tokio_util::task::TaskTracker;

pub(super) const SERVER: &str = "mysql";

/// How long a connection may take to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(3);

/// How long [`MySqlPool::close`] waits for what is under way.
const LAST_STATEMENTS: Duration = Duration::from_secs(3);

/// What a server answers that will be able to do it after a while: it has too many connections, it ends, is offline or
/// read-only just now, its node has lost its cluster, it has ended the statement or the connection because of others.
const NOT_NOW: [u16; 12] = [
    1040, 1047, 1053, 1203, 1205, 1213, 1226, 1290, 1317, 1836, 1927, 3032,
];

/// How to reach MySQL or MariaDB, and with how many connections.
///
/// ```
/// # use oversell_lock::mysql::MySqlOptions;
/// let options = MySqlOptions::new("mysql://shop:secret@127.0.0.1:3306/shop?ssl-mode=VERIFY_CA&ssl-ca=ca.pem").connections(20);
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct MySqlOptions {
    url: String,
    connections: usize,
    process: Process,
}

impl MySqlOptions {
    /// Starts from `mysql://user[:password]@host[:port]/database`, and behind a `?` what sqlx takes, as `ssl-mode`
    /// (which needs the feature `tls`); 10 connections, a process of its own.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 10,
            process: Process::new(),
        }
    }

    /// Sets the most connections, 1 or more. A waiter has none; acquiring and releasing need one.
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self {
            connections,
            ..self
        }
    }

    /// Sets this process, after which owners are named.
    #[must_use]
    pub fn process(self, process: Process) -> Self {
        Self { process, ..self }
    }
}

/// The address may hold a password, and is not shown.
impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// Makes connections; recycles each as it is, since only clean ones come back.
#[derive(Debug)]
struct Connections(Arc<MySqlConnectOptions>);

/// A connection, and what the server knows it by.
struct Link {
    connection: MySqlConnection,
    id: i64,
    host: Arc<str>,
}

impl managed::Manager for Connections {
    type Type = Link;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Link, sqlx::Error> {
        const SELF: &str = "SELECT CAST(ID AS SIGNED), HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
        let mut connection = MySqlConnection::connect_with(&self.0).await?;
        let (id, host): (i64, String) = sqlx::query_as(SELF).fetch_one(&mut connection).await?;
        Ok(Link {
            connection,
            id,
            host: host.into(),
        })
    }

    async fn recycle(&self, _: &mut Link, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

/// A pool of MySQL or MariaDB connections. Cloning it is cheap.
///
/// ```no_run
/// # use oversell_lock::{LockError, mysql::MySqlPool};
/// # use std::time::Duration;
/// # async fn example() -> Result<(), LockError> {
/// let pool = MySqlPool::connect("mysql://shop:secret@127.0.0.1/shop").await?;
/// let mut conn = pool.conn(Duration::from_secs(5)).await?;
/// // What it takes is a `sqlx::MySqlConnection`. It goes back to the pool only when it is said to be clean.
/// conn.done();
/// pool.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MySqlPool(Arc<Inner>);

struct Inner {
    connections: Pool<Connections>,
    shared: ByType,
    process: Process,
    tasks: TaskTracker,
}

/// A connection that closes unless it is [`done`](Conn::done).
#[must_use = "a connection that is dropped without `done` is closed"]
pub struct Conn(Option<Object<Connections>>, MySqlPool);

impl MySqlPool {
    /// Makes a pool of at most 10 connections to `url`, of which the first is made at once: so a server that cannot be
    /// reached, or does not let us in, is known here.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`LockError::Unavailable`] where the server does not answer, [`LockError::Refused`] where it
    /// lets nobody in under this name.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        let pool = Self::new(MySqlOptions::new(url))?;
        pool.conn(CONNECT).await?.done();
        Ok(pool)
    }

    /// Makes a pool that connects when first used.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] where the address is not one, or there are to be no connections.
    pub fn new(options: MySqlOptions) -> Result<Self, LockError> {
        let invalid = |name: &str, rule| LockError::invalid(name, rule);
        // The address may hold a password, and is not repeated.
        let url = MySqlConnectOptions::from_str(&options.url)
            .ok()
            .filter(|_| options.url.starts_with("mysql://"));
        let url = url.ok_or_else(|| {
            invalid(
                "url",
                "must be mysql://user[:password]@host[:port]/database",
            )
        })?;
        if options.connections == 0 {
            return Err(invalid("connections", "must be 1 or more"));
        }
        let connections = Pool::builder(Connections(Arc::new(url.disable_statement_logging())))
            .max_size(options.connections)
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|e| LockError::unavailable(SERVER, e))?;
        let (shared, tasks) = (ByType::default(), TaskTracker::new());
        Ok(Self(Arc::new(Inner {
            connections,
            shared,
            process: options.process,
            tasks,
        })))
    }

    /// Makes a new owner, to take a re-entrant lock with.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.process.owner()
    }

    /// Gets a connection, waiting for a free one at most `wait`.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] where all were in use for that long, [`LockError::Unavailable`] where none could
    /// be made.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is taken before it completes.
    pub async fn conn(&self, wait: Duration) -> Result<Conn, LockError> {
        let timeouts = Timeouts {
            wait: Some(wait),
            create: Some(CONNECT),
            recycle: None,
        };
        match self.0.connections.timeout_get(&timeouts).await {
            Ok(object) => Ok(Conn(Some(object), self.clone())),
            Err(PoolError::Backend(e)) => Err(failed(e)),
            Err(PoolError::Timeout(managed::TimeoutType::Wait)) => {
                Err(LockError::taken("mysql connection pool", wait))
            }
            Err(e) => Err(LockError::unavailable(SERVER, e)),
        }
    }

    /// Drops every idle connection: after one was found dead, the others are too.
    pub fn forget_idle(&self) {
        self.0.connections.retain(|_, _| false);
    }

    /// Returns how many connections there are, and how many of them are idle.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let status = self.0.connections.status();
        (status.size, status.available)
    }

    /// Waits, 3 s at most, for locks that are being given back and for abandoned statements that are being ended, and
    /// closes the idle connections. What is asked of the pool from then on fails.
    pub async fn close(&self) {
        self.0.tasks.close();
        if timeout(LAST_STATEMENTS, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(
                left = self.0.tasks.len(),
                "closing the mysql pool before all locks in tb_lock are deleted"
            );
        }
        self.0.connections.close();
    }

    /// What the locks of this pool share, by type.
    pub(super) fn shared(&self) -> &ByType {
        &self.0.shared
    }

    /// How its connections are made.
    fn server(&self) -> Arc<MySqlConnectOptions> {
        Arc::clone(&self.0.connections.manager().0)
    }

    /// The tasks that [`close`](Self::close) waits for.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }
}

impl fmt::Debug for MySqlPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MySqlPool").field(&self.counts()).finish()
    }
}

/// Why a [`Conn`] has a connection.
const FULL: &str = "only `done` and `drop` empty it, and both consume it";

impl Conn {
    /// Puts the connection back: no statement is under way and no transaction open.
    pub fn done(mut self) {
        self.0.take();
    }

    /// Returns what the server knows it by, for a statement that must not take for ever ([`Session::bounded`]).
    #[must_use]
    pub fn session(&self) -> Session {
        let link = self.0.as_ref().expect(FULL);
        Session::new(self.1.server(), link.id, Arc::clone(&link.host))
    }

    /// Closes the connection; what the server is still doing for it is the caller's to [end](Session::end).
    pub(super) fn abandon(mut self) -> Option<Session> {
        self.close()
    }

    fn close(&mut self) -> Option<Session> {
        let Link {
            connection,
            id,
            host,
        } = Object::take(self.0.take()?);
        drop(connection);
        Some(Session::new(self.1.server(), id, host))
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some(session) = self.close() else { return };
        if Handle::try_current().is_ok() {
            self.1.tasks().spawn(async move {
                if let Err(error) = session.end().await {
                    tracing::debug!(%error, ?session, "an abandoned connection was not killed");
                }
            });
        }
    }
}

impl Deref for Conn {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        &self.0.as_ref().expect(FULL).connection
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        &mut self.0.as_mut().expect(FULL).connection
    }
}

/// What a statement that failed means for a lock.
pub(super) fn failed(error: sqlx::Error) -> LockError {
    let refused = match &error {
        sqlx::Error::Database(answer) => {
            !number(&**answer).is_some_and(|number| NOT_NOW.contains(&number))
        }
        _ => false,
    };
    let (server, reason) = (SERVER, error.into());
    if refused {
        LockError::Refused { server, reason }
    } else {
        LockError::unavailable(server, reason)
    }
}

/// The server's number of an error.
pub(super) fn number(error: &dyn DatabaseError) -> Option<u16> {
    error
        .try_downcast_ref::<MySqlDatabaseError>()
        .map(MySqlDatabaseError::number)
}
