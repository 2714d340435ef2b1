//! The server's identity of a connection, so that another connection can kill it: an abandoned statement would
//! otherwise continue, and might be carried out later.

use super::failure::has_error_number;
use crate::Owner;
use sqlx::{Connection, Executor, MySqlConnection, mysql::MySqlConnectOptions};
use std::{future::Future, io, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long the server may take for each answer; then the request fails.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// The tables in which a server lists its connections. MySQL cannot read the first one while any statement on the server has
/// a character of four bytes, an emoji for example. MariaDB can, and may not have the second one.
const CONNECTION_TABLES: [&str; 2] = ["information_schema.PROCESSLIST", "performance_schema.processlist"];
/// The number of MySQL's error for a list of connections that has a character of four bytes.
const UNREADABLE_CHARACTER_ERROR: u16 = 3854;

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

    /// Kills the connection and waits until it is gone, however long its statement is being undone: after that nothing more
    /// can come of it. `Ok` too if it had gone already. An error means that the server did not answer, or refused the second
    /// connection.
    pub(super) async fn kill(&self) -> Result<(), sqlx::Error> {
        // A killed connection is gone within milliseconds, unless its statement is being undone.
        const CHECK_PAUSE: Duration = Duration::from_millis(20);
        let mut connection = self.connect().await?;
        while within_reply_timeout(self.is_connected(&mut connection)).await? {
            within_reply_timeout(send_kill(&mut connection, format!("KILL {}", self.id))).await?;
            tokio::time::sleep(CHECK_PAUSE).await;
        }
        within_reply_timeout(connection.close()).await
    }

    /// Whether the server has a row of this name by another owner, asked over a new connection. A row counts too while its
    /// insertion or its deletion is not committed.
    pub(super) async fn has_row_of_other_owner(&self, name: &str, owner: Owner) -> Result<bool, sqlx::Error> {
        const COUNT: &str = "SELECT COUNT(*) FROM tb_lock WHERE lock_name = ? AND NOT (owner <=> ?)";
        let mut connection = self.connect().await?;
        let mut rows = 0;
        for level in ["READ UNCOMMITTED", "READ COMMITTED"] {
            let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
            within_reply_timeout(connection.execute(set.as_str())).await?;
            let count = sqlx::query_scalar::<_, i64>(COUNT);
            let count = count.bind(name).bind(owner.to_string());
            rows += within_reply_timeout(count.fetch_one(&mut connection)).await?;
        }
        within_reply_timeout(connection.close()).await?;
        Ok(rows > 0)
    }

    /// Opens a second connection to the same server.
    async fn connect(&self) -> Result<MySqlConnection, sqlx::Error> {
        within_reply_timeout(MySqlConnection::connect_with(&self.server)).await
    }

    /// Whether the server still has this connection.
    async fn is_connected(&self, connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
        let there = connection_id_and_host(connection, Some(self.id)).await?;
        Ok(there.is_some_and(|(_, host)| *host == *self.host))
    }
}

/// Returns the number and the client's address of the connection `id`, or of this one without an `id`; `None` if there is no
/// such connection.
pub(super) async fn connection_id_and_host(
    connection: &mut MySqlConnection,
    id: Option<i64>,
) -> Result<Option<(i64, String)>, sqlx::Error> {
    let mut found = Ok(None);
    for table in CONNECTION_TABLES {
        let select = format!("SELECT CAST(ID AS SIGNED), HOST FROM {table} WHERE ID = COALESCE(?, CONNECTION_ID())");
        let select = sqlx::query_as(&select).bind(id);
        found = select.fetch_optional(&mut *connection).await;
        match &found {
            Err(sqlx::Error::Database(error)) if has_error_number(&**error, &[UNREADABLE_CHARACTER_ERROR]) => {}
            _ => break,
        }
    }
    found
}

/// Fails with a timeout if there is no answer within [`REPLY_TIMEOUT`].
async fn within_reply_timeout<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    timeout(REPLY_TIMEOUT, answer).await.unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
}

/// Sends the KILL. A refusal by the server is no error: the connection has probably ended already.
async fn send_kill(connection: &mut MySqlConnection, order: String) -> Result<(), sqlx::Error> {
    match connection.execute(order.as_str()).await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
