//! The server's identity of a connection, so that another connection can kill it: an abandoned statement would
//! otherwise continue, and might be carried out later.
//!
//! Next to read: `table_lock.rs`.

use sqlx::{Connection, Executor, MySqlConnection, mysql::MySqlConnectOptions};
use std::{future::Future, io, sync::Arc, time::Duration};
use tokio::time::timeout;

const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection's number and its client's address: after a restart of the server the number may be another's.
#[derive(Debug, Clone)]
pub(super) struct ConnectionId {
    server: Arc<MySqlConnectOptions>,
    id: i64,
    host: Arc<str>,
}

impl ConnectionId {
    pub(super) fn new(server: Arc<MySqlConnectOptions>, id: i64, host: Arc<str>) -> Self {
        Self { server, id, host }
    }

    /// Kills the connection and waits until it is gone: after that nothing more can come of its last statement. The
    /// error is that the server did not answer.
    pub(super) async fn kill(&self) -> Result<(), sqlx::Error> {
        const CHECK_PAUSE: Duration = Duration::from_millis(20);
        let mut connection = self.connect().await?;
        while in_time(self.is_there(&mut connection)).await? {
            in_time(send_kill(&mut connection, format!("KILL {}", self.id))).await?;
            tokio::time::sleep(CHECK_PAUSE).await;
        }
        in_time(connection.close()).await
    }

    async fn connect(&self) -> Result<MySqlConnection, sqlx::Error> {
        in_time(MySqlConnection::connect_with(&self.server)).await
    }

    async fn is_there(&self, connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
        const THERE: &str =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ? AND HOST = ?";
        let there: i64 = sqlx::query_scalar(THERE)
            .bind(self.id)
            .bind(&*self.host)
            .fetch_one(connection)
            .await?;
        Ok(there > 0)
    }
}

/// Fails with a timeout if there is no answer in time.
async fn in_time<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(REPLY_TIMEOUT, answer)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
}

/// Sends the KILL; a connection that has already ended is no error.
async fn send_kill(connection: &mut MySqlConnection, order: String) -> Result<(), sqlx::Error> {
    match connection.execute(order.as_str()).await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
