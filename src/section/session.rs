//! A time limit for a statement of MySQL.
//!
//! A client that gives up waiting for an answer does not know whether the statement was carried out. So a client that is out of
//! time has the server end the statement (`KILL QUERY`, on another connection) and then reads the answer: it says which.

use oversell_lock::mysql::Conn;
use sqlx::{Connection, Executor, MySqlConnection, mysql::MySqlConnectOptions};
use std::{
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

/// How long to wait for the answer of a statement after KILL QUERY.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection by its id in the server, so that another connection can end its statement.
#[derive(Debug)]
pub(crate) struct Session {
    server: Arc<MySqlConnectOptions>,
    id: i64,
    close_when_done_flag: Arc<AtomicBool>,
}

impl Session {
    pub(crate) fn of(conn: &Conn) -> Self {
        Self { server: conn.server(), id: conn.id(), close_when_done_flag: conn.close_when_done_flag() }
    }

    /// Waits at most `limit` for `statement`, then has the server end it and waits at most 3 s for its answer, which counts
    /// whether or not it was ended. An ended statement fails with error 1317 and has changed nothing. [`sqlx::Error::Io`]
    /// with `TimedOut` means no answer: it may have been done. After an answer the connection can be reused; [`Conn::done`]
    /// closes it if the KILL QUERY may still be on its way.
    pub(crate) async fn bounded<T, F>(&self, limit: Duration, statement: F) -> sqlx::Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let mut statement = pin!(statement);
        if let Ok(answer) = timeout(limit, &mut statement).await {
            return answer;
        }
        let mut answer = None;
        let both = async { tokio::join!(async { answer = Some(statement.await) }, self.end_statement()) };
        match timeout(KILL_TIMEOUT, both).await {
            Ok(((), Ok(()))) => {}
            Ok(((), Err(error))) => tracing::debug!(%error, "KILL QUERY failed"),
            Err(_) => tracing::debug!("KILL QUERY or its statement was not answered"),
        }
        answer.unwrap_or_else(|| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
    }

    /// Ends the statement in progress by KILL QUERY, on another connection. Until that is answered, the flag keeps the session's
    /// connection from being reused: the KILL could hit the next user's statement.
    async fn end_statement(&self) -> sqlx::Result<()> {
        let mut connection = MySqlConnection::connect_with(&self.server).await?;
        let order = format!("KILL QUERY {}", self.id);
        self.close_when_done_flag.store(true, Ordering::Relaxed);
        match connection.execute(order.as_str()).await {
            // A connection that has ended by then is no error.
            Ok(_) | Err(sqlx::Error::Database(_)) => {
                self.close_when_done_flag.store(false, Ordering::Relaxed);
                connection.close().await
            }
            Err(error) => Err(error),
        }
    }
}
