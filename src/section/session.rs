//! A time limit for a statement of MySQL.
//!
//! A client that gives up waiting for an answer does not know whether the statement was carried out. So a client that is out of
//! time has the server end the statement (`KILL QUERY`, on another connection) and then reads the answer: it says which.

use oversell_lock::mysql::Conn;
use sqlx::{Connection, Executor, MySqlConnection, mysql::MySqlConnectOptions};
use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long an answer is waited for once the server was told to end its statement.
const ANSWER: Duration = Duration::from_secs(3);

/// A connection as the server knows it.
#[derive(Debug)]
pub(crate) struct Session {
    server: Arc<MySqlConnectOptions>,
    id: i64,
}

impl Session {
    pub(crate) fn of(conn: &Conn) -> Self {
        Self {
            server: conn.server(),
            id: conn.id(),
        }
    }

    /// Waits for `statement`, which is sent on this connection, at most `limit`; then has the server end it, and waits
    /// 3 s at most for its answer. One that was ended fails with error 1317 and has changed nothing; the connection can
    /// be used on. [`sqlx::Error::Io`] with `TimedOut` where no answer came: it may have been done.
    ///
    /// # Cancel safety
    ///
    /// As the statement's: a [`Conn`] that is dropped is closed and killed.
    pub(crate) async fn bounded<T, F>(&self, limit: Duration, statement: F) -> sqlx::Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let mut statement = pin!(statement);
        if let Ok(answer) = timeout(limit, &mut statement).await {
            return answer;
        }
        // Both, so that the connection is not used on while the order to end its statement is still on its way.
        let both = async { tokio::join!(statement, self.end_statement()) };
        match timeout(ANSWER, both).await {
            Ok((answer, ended)) => ended.and(answer),
            Err(_) => Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())),
        }
    }

    /// The statement is not answered yet, so the number is still this connection's.
    async fn end_statement(&self) -> sqlx::Result<()> {
        let mut connection = MySqlConnection::connect_with(&self.server).await?;
        let order = format!("KILL QUERY {}", self.id);
        match connection.execute(order.as_str()).await {
            // A connection that has ended by then is no error.
            Ok(_) | Err(sqlx::Error::Database(_)) => connection.close().await,
            Err(error) => Err(error),
        }
    }
}
