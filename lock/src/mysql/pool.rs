//! A pool whose connections go back only when they are said to be clean.
//!
//! A future can be dropped at any `await`: between `BEGIN` and `COMMIT`, or while an answer is on its way. A
//! connection that went back to the pool then would hand an open transaction, and its row locks, to the
//! next user. So the rule is the other way round: [`Conn::done`] puts a connection back, and one that is
//! dropped without it is closed and killed on the server, which rolls back at once, even where it was
//! still waiting for a row lock. sqlx's own pool pings on each release; this one does not.
//!
//! Next to read: `session.rs`.

use super::{lease_lock::Hold, session::Session};
use crate::{LockError, reentry::Reentry};
use deadpool::managed::{self, Metrics, Object, Pool, PoolError, RecycleResult, Timeouts};
use sqlx::{
    ConnectOptions, Connection, MySqlConnection,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};
use std::{
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

/// Makes connections; recycles each as it is, since only clean ones come back.
#[derive(Debug)]
struct Connections(MySqlConnectOptions);

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
        const SELF: &str =
            "SELECT CAST(ID AS SIGNED), HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
        let mut connection = MySqlConnection::connect_with(&self.0).await?;
        let (id, host): (i64, String) = sqlx::query_as(SELF).fetch_one(&mut connection).await?;
        Ok(Link { connection, id, host: host.into() })
    }

    async fn recycle(&self, _: &mut Link, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

/// A pool of MySQL or MariaDB connections. Cloning it is cheap.
#[derive(Clone)]
pub struct MySqlPool(Arc<Inner>);

struct Inner {
    connections: Pool<Connections>,
    /// What owners hold.
    lease_locks: Reentry<Hold>,
    tasks: TaskTracker,
}

/// A connection that closes unless it is [`done`](Conn::done).
#[must_use = "a connection that is dropped without `done` is closed"]
pub struct Conn(Option<Object<Connections>>, MySqlPool);

impl MySqlPool {
    /// A pool of at most `size` connections (1 or more) to `url`. Connects when first used.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] where `url` is not a `mysql://` address.
    pub fn new(url: &str, size: usize) -> Result<Self, LockError> {
        let options = MySqlConnectOptions::from_str(url)
            .map_err(|e| unavailable(&e))?
            .ssl_mode(MySqlSslMode::Preferred)
            .disable_statement_logging();
        let connections = Pool::builder(Connections(options))
            .max_size(size)
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|e| LockError::Unavailable { server: SERVER, reason: e.to_string() })?;
        Ok(Self(Arc::new(Inner { connections, lease_locks: Reentry::default(), tasks: TaskTracker::new() })))
    }

    /// A connection, waiting for a free one at most `wait`.
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
        let timeouts = Timeouts { wait: Some(wait), create: Some(CONNECT), recycle: None };
        match self.0.connections.timeout_get(&timeouts).await {
            Ok(object) => Ok(Conn(Some(object), self.clone())),
            Err(PoolError::Backend(e)) => Err(unavailable(&e)),
            Err(PoolError::Timeout(managed::TimeoutType::Wait)) => {
                Err(LockError::Taken { name: "mysql connection pool".into(), waited: wait })
            }
            Err(e) => Err(LockError::Unavailable { server: SERVER, reason: e.to_string() }),
        }
    }

    /// Drops every idle connection: after one was found dead, the others are too.
    pub fn forget_idle(&self) {
        self.0.connections.retain(|_, _| false);
    }

    /// How many connections there are, and how many of them are idle.
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
            tracing::warn!(left = self.0.tasks.len(), "closing the mysql pool before all locks in tb_lock are deleted");
        }
        self.0.connections.close();
    }

    /// The rows of `tb_lock` that owners may take again.
    pub(super) fn lease_locks(&self) -> &Reentry<Hold> {
        &self.0.lease_locks
    }

    /// How its connections are made.
    pub(super) fn server(&self) -> &MySqlConnectOptions {
        &self.0.connections.manager().0
    }

    /// The tasks that [`close`](Self::close) waits for.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }
}

impl std::fmt::Debug for MySqlPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MySqlPool").field(&self.counts()).finish()
    }
}

impl Conn {
    /// Puts the connection back: no statement is under way and no transaction open.
    pub fn done(mut self) {
        self.0.take();
    }

    /// What the server knows it by, for a statement that must not take for ever ([`Session::bounded`]).
    #[must_use]
    pub fn session(&self) -> Session {
        match &self.0 {
            Some(link) => Session::new(self.1.clone(), link.id, Arc::clone(&link.host)),
            None => unreachable!("only `done` and `drop` empty it, and both consume it"),
        }
    }

    /// Closes the connection; what the server is still doing for it is the caller's to [end](Session::end).
    pub(super) fn abandon(mut self) -> Option<Session> {
        self.close()
    }

    fn close(&mut self) -> Option<Session> {
        let Link { connection, id, host } = Object::take(self.0.take()?);
        drop(connection);
        Some(Session::new(self.1.clone(), id, host))
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
        match &self.0 {
            Some(object) => &object.connection,
            None => unreachable!("only `done` and `drop` empty it, and both consume it"),
        }
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        match &mut self.0 {
            Some(object) => &mut object.connection,
            None => unreachable!("only `done` and `drop` empty it, and both consume it"),
        }
    }
}

/// A database error that means that the server did not answer.
pub(crate) fn unavailable(error: &sqlx::Error) -> LockError {
    LockError::Unavailable { server: SERVER, reason: error.to_string() }
}
