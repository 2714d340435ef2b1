//! The pool under the locks in the table: a connection that is dropped takes what it was doing with it, one that is done is
//! used again.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    table::Table,
};
use oversell_lock::LockError;
use sqlx::{Connection, Executor, MySqlConnection, query_scalar};
use std::{ops::DerefMut, sync::Arc, time::Duration};
use tokio::time::timeout;

/// Longer than the server takes to end what it was told to end.
const SHORT: Duration = Duration::from_millis(500);
const INSERT: &str = "INSERT INTO tb_lock (lock_name, owner) VALUES (?, 'nobody')";

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// What the server calls this connection.
pub(crate) async fn id(connection: &mut MySqlConnection) -> Result<i64, String> {
    query_scalar("SELECT CAST(CONNECTION_ID() AS SIGNED)")
        .fetch_one(connection)
        .await
        .map_err(text)
}

/// Waits until what the server does on a connection is `doing`; `None`: until there is no such connection.
async fn until_it_is(table: &Table, id: i64, doing: Option<&str>) -> Verdict {
    let mut outsider = table.outsider().await;
    let it_is = async {
        let seen = "SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = ?";
        loop {
            let info: Option<Option<String>> = query_scalar(seen)
                .bind(id)
                .fetch_optional(&mut outsider)
                .await
                .map_err(text)?;
            match (doing, info) {
                (None, None) => return Ok(()),
                (Some(doing), Some(Some(info))) if info.starts_with(doing) => return Ok(()),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    timeout(SOON, it_is)
        .await
        .map_err(|_| format!("never came: connection {id} with {doing:?}"))?
}

/// Waits until the connection is gone.
pub(crate) async fn gone(table: &Table, id: i64) -> Verdict {
    until_it_is(table, id, None).await
}

/// A statement waits on this connection for a row that another transaction holds, and its caller goes away.
async fn left_waiting<C>(table: &Table, name: &str, mut connection: C) -> Result<i64, String>
where
    C: DerefMut<Target = MySqlConnection> + Send + 'static,
{
    let (id, row) = (id(&mut connection).await?, name.to_owned());
    let waiting = tokio::spawn(async move {
        sqlx::query(INSERT)
            .bind(row)
            .execute(&mut *connection)
            .await
            .map(drop)
    });
    until_it_is(table, id, Some("INSERT")).await?;
    waiting.abort();
    Ok(id)
}

pub(crate) async fn a_dropped_connection_ends_its_waiting_statement(table: Arc<Table>) -> Verdict {
    let (name, process, mut human) = (name(), table.process().await, table.outsider().await);
    let mut transaction = human.begin().await.map_err(text)?;
    sqlx::query(INSERT)
        .bind(&name)
        .execute(&mut *transaction)
        .await
        .map_err(text)?;
    let connection = says("a connection", process.pool.conn(SOON).await)?;
    let id = left_waiting(&table, &name, connection).await?;
    gone(&table, id).await?;
    transaction.rollback().await.map_err(text)
}

/// The twin: a connection that is only closed. Its statement waits on, and makes a row that is nobody's.
pub(crate) async fn a_connection_that_is_only_closed_is_caught(table: Arc<Table>) -> Verdict {
    let (name, mut human) = (name(), table.outsider().await);
    let mut transaction = human.begin().await.map_err(text)?;
    sqlx::query(INSERT)
        .bind(&name)
        .execute(&mut *transaction)
        .await
        .map_err(text)?;
    let id = left_waiting(&table, &name, Box::new(table.outsider().await)).await?;
    ensure(timeout(SHORT, gone(&table, id)).await.is_err(), || {
        "its statement has ended".into()
    })?;
    transaction.rollback().await.map_err(text)?;
    until("there is a row", || async {
        table.left(&name).await.len() == 1
    })
    .await?;
    table.delete(&name).await;
    Ok(())
}

/// Whether another inserts within `wait` the row that a transaction on a pooled connection has inserted; `end` is what
/// becomes of the connection.
async fn another_after(
    table: &Table,
    end: impl FnOnce(oversell_lock::mysql::Conn),
    wait: Duration,
) -> Result<bool, String> {
    let (name, process) = (name(), table.process().await);
    let mut connection = says("a connection", process.pool.conn(SOON).await)?;
    connection.execute("BEGIN").await.map_err(text)?;
    sqlx::query(INSERT)
        .bind(&name)
        .execute(&mut *connection)
        .await
        .map_err(text)?;
    end(connection);
    let mut outsider = table.outsider().await;
    let Ok(inserted) = timeout(wait, sqlx::query(INSERT).bind(&name).execute(&mut outsider)).await
    else {
        return Ok(false);
    };
    inserted.map_err(text)?;
    table.delete(&name).await;
    Ok(true)
}

pub(crate) async fn a_dropped_connection_ends_its_transaction(table: Arc<Table>) -> Verdict {
    ensure(another_after(&table, drop, SOON).await?, || {
        "its row is still locked".into()
    })
}

pub(crate) async fn a_transaction_that_goes_back_open_is_caught(table: Arc<Table>) -> Verdict {
    ensure(
        !another_after(&table, oversell_lock::mysql::Conn::done, SHORT * 4).await?,
        || "nothing was locked".into(),
    )
}

/// And one that was dropped makes room for another.
pub(crate) async fn a_connection_that_is_done_is_used_again(table: Arc<Table>) -> Verdict {
    let process = table.process_with(&table.server(), 1).await;
    let mut ids = Vec::new();
    for round in 0..4 {
        let mut connection = says("a connection", process.pool.conn(SOON).await)?;
        ids.push(id(&mut connection).await?);
        let counts = process.pool.counts();
        ensure(counts == (1, 0), || format!("in use: {counts:?}"))?;
        let busy = process.pool.conn(Duration::ZERO).await;
        ensure(
            matches!(
                busy,
                Err(LockError::Taken { .. } | LockError::Unavailable { .. })
            ),
            || "a second one".into(),
        )?;
        if round < 2 {
            connection.done()
        } else {
            drop(connection)
        }
    }
    let [first, second, third, fourth] = ids[..] else {
        return Err(format!("{ids:?}"));
    };
    ensure(
        first == second && second == third && third != fourth,
        || format!("{ids:?}"),
    )?;
    let counts = process.pool.counts();
    ensure(counts == (0, 0), || format!("all were dropped: {counts:?}"))
}
