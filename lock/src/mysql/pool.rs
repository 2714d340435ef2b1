//! A pool whose connections go back only when they are said to be clean.
//!
//! A future can be dropped at any `await`: between `BEGIN` and `COMMIT`, or while an answer is on its way. A
//! connection that went back to the pool then would hand an open transaction, and its row locks, to the
//! next user. So the rule is the other way round: [`Conn::done`] puts a connection back, and one that is
//! dropped without it is closed and killed on the server, which rolls back at once, even where it was
//! still waiting for a row lock. sqlx's own pool pings on each release; this one does not.
//!
//! Next to read: `table_lock.rs`.

use crate::LockError;
use deadpool::managed::{self, Metrics, Object, Pool, PoolError, RecycleResult, Timeouts};
use sqlx::{
    Connection, Executor, MySqlConnection,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};
use std::{
    ops::{Deref, DerefMut},
    str::FromStr,
    time::Duration,
};

const SERVER: &str = "mysql";

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(3);

/// Makes connections; recycles each as it is, since only clean ones come back.
#[derive(Debug)]
struct Connections(MySqlConnectOptions);

/// A connection and the number that the server knows it by.
struct Link {
    connection: MySqlConnection,
    id: u64,
}

impl managed::Manager for Connections {
    type Type = Link;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Link, sqlx::Error> {
        let mut connection = MySqlConnection::connect_with(&self.0).await?;
        let id = sqlx::query_scalar("SELECT CONNECTION_ID()").fetch_one(&mut connection).await?;
        Ok(Link { connection, id })
    }

    async fn recycle(&self, _: &mut Link, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

impl Connections {
    /// Ends what a closed connection was still doing: the server itself looks only when the statement ends.
    async fn kill(options: MySqlConnectOptions, id: u64) {
        let killed = async {
            let mut connection = MySqlConnection::connect_with(&options).await?;
            connection.execute(format!("KILL {id}").as_str()).await?;
            connection.close().await
        };
        if let Err(error) = killed.await {
            tracing::debug!(%error, id, "the connection had ended before it was killed");
        }
    }
}

/// A pool of MySQL or MariaDB connections. Cloning it is cheap.
#[derive(Clone)]
pub struct MySqlPool(Pool<Connections>);

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
        let options =
            MySqlConnectOptions::from_str(url).map_err(|e| unavailable(&e))?.ssl_mode(MySqlSslMode::Preferred);
        Pool::builder(Connections(options))
            .max_size(size)
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map(Self)
            .map_err(|e| LockError::Unavailable { server: SERVER, reason: e.to_string() })
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
        match self.0.timeout_get(&timeouts).await {
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
        self.0.retain(|_, _| false);
    }

    /// How many connections there are, and how many of them are idle.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let status = self.0.status();
        (status.size, status.available)
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
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            let Link { connection, id } = Object::take(object);
            drop(connection);
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(Connections::kill(self.1.0.manager().0.clone(), id));
            }
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
