//! The locks' pool: a dropped connection is killed with its statement, one that is `done` is reused.

use crate::support::*;
use oversell_lock::mysql::{Conn, MySqlOptions, TablePool};
use sqlx::{Connection, Executor, MySql, MySqlConnection, Row, Transaction, mysql::MySqlRow, query_scalar};
use std::ops::DerefMut;

/// Longer than the server needs to kill a connection.
const SHORT: Duration = Duration::from_millis(500);
const INSERT: &str = "INSERT INTO tb_lock (lock_name, owner) VALUES (?, 'nobody')";

/// The server's number of this connection.
async fn id(connection: &mut MySqlConnection) -> Result<i64> {
    let id = query_scalar("SELECT CAST(CONNECTION_ID() AS SIGNED)");
    Ok(id.fetch_one(connection).await?)
}

/// Waits until the connection's statement is `doing`; `None`: until the connection is gone.
async fn until_it_is(table: &Table, id: i64, doing: Option<&str>) -> Result {
    let mut outsider = table.outsider().await;
    let it_is = async {
        loop {
            // MySQL's table of connections fails while any statement has an emoji.
            let all = sqlx::raw_sql("SHOW FULL PROCESSLIST");
            let all = all.fetch_all(&mut outsider).await?;
            let one = |row: &&MySqlRow| row.get_unchecked::<i64, _>("Id") == id;
            // A statement that is only prepared is shown too.
            let info = all.iter().find(one).map(|row| {
                let executes = row.get_unchecked::<String, _>("Command") == "Execute";
                let info: Option<String> = row.get_unchecked("Info");
                info.filter(|_| executes)
            });
            match (doing, info) {
                (None, None) => return Ok(()),
                (Some(doing), Some(Some(info))) if info.starts_with(doing) => return Ok(()),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let came = timeout(SOON, it_is).await;
    came.with_context(|| format!("never came: connection {id} with {doing:?}"))?
}

pub(crate) async fn gone(table: &Table, id: i64) -> Result {
    until_it_is(table, id, None).await
}

/// A statement on this connection waits for a locked row, and its caller is dropped.
async fn left_waiting<C>(table: &Table, name: &str, mut connection: C) -> Result<i64>
where
    C: DerefMut<Target = MySqlConnection> + Send + 'static,
{
    let (id, row) = (id(&mut connection).await?, name.to_owned());
    let waiting = tokio::spawn(async move {
        let insert = sqlx::query(INSERT).bind(row);
        insert.execute(&mut *connection).await.map(drop)
    });
    until_it_is(table, id, Some("INSERT")).await?;
    waiting.abort();
    Ok(id)
}

/// A name between two rows, so that no other test's gap lock or deadlock interferes.
pub(crate) async fn name_apart(table: &Table) -> Result<String> {
    let (name, mut human) = (name(), table.outsider().await);
    for end in ["", "2"] {
        let row = format!("{name}{end}");
        sqlx::query(INSERT).bind(row).execute(&mut human).await?;
    }
    Ok(format!("{name}1"))
}

/// A person's open transaction that inserted this row.
pub(crate) async fn holds_the_row<'c>(human: &'c mut MySqlConnection, name: &str) -> Result<Transaction<'c, MySql>> {
    let mut transaction = human.begin().await?;
    let insert = sqlx::query(INSERT).bind(name);
    insert.execute(&mut *transaction).await?;
    Ok(transaction)
}

/// The twin only closes the connection: its statement continues and makes an orphan row.
#[apply(test!)]
async fn a_connection_that_is_only_closed_is_caught(table: &Table) -> Result {
    let (name, mut human) = (name_apart(table).await?, table.outsider().await);
    let transaction = holds_the_row(&mut human, &name).await?;
    let id = left_waiting(table, &name, Box::new(table.outsider().await)).await?;
    let gone = timeout(SHORT, gone(table, id)).await;
    ensure!(gone.is_err(), "its statement has ended");
    transaction.rollback().await?;
    let there = async || table.left(&name).await.len() == 1;
    until("there is a row", there).await?;
    table.delete(&name).await;
    Ok(())
}

/// Whether another transaction can insert the row within `wait`, after `end` handled the pooled connection that
/// inserted it.
async fn another_after(table: &Table, end: impl FnOnce(Conn), wait: Duration) -> Result<bool> {
    let (name, pool) = (name(), table.client().await);
    let mut connection = pool.conn(SOON).await?;
    connection.execute("BEGIN").await?;
    let insert = || sqlx::query(INSERT).bind(&name);
    insert().execute(&mut *connection).await?;
    end(connection);
    let mut outsider = table.outsider().await;
    let Ok(inserted) = timeout(wait, insert().execute(&mut outsider)).await else {
        return Ok(false);
    };
    inserted?;
    table.delete(&name).await;
    Ok(true)
}

#[apply(test!)]
async fn a_dropped_connection_ends_its_transaction(table: &Table) -> Result {
    let another = another_after(table, drop, SOON).await?;
    ensure!(another, "its row is still locked");
    Ok(())
}

#[apply(test!)]
async fn a_transaction_that_goes_back_open_is_caught(table: &Table) -> Result {
    let another = another_after(table, Conn::done, SHORT * 4).await?;
    ensure!(!another, "nothing was locked");
    Ok(())
}

/// A dropped connection makes room for another.
#[apply(test!)]
async fn a_connection_that_is_done_is_used_again(table: &Table) -> Result {
    let pool = table.pool(&table.address(), 1);
    let mut ids = Vec::new();
    for round in 0..4 {
        let mut connection = pool.conn(SOON).await?;
        ids.push(id(&mut connection).await?);
        ensure_equal("in use", pool.counts(), (1, 0))?;
        let second = pool.conn(Duration::ZERO).await;
        ensure_unavailable("a second one", second.map(Conn::done))?;
        match round {
            0 | 1 => connection.done(),
            _ => drop(connection),
        }
    }
    ensure!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3], "{ids:?}");
    ensure_equal("when all were dropped", pool.counts(), (0, 0))
}

/// Two proxies to the nodes of one cluster: the first that answers is used, a connection stays there, and its statement
/// is killed there, even if the first is usable again. The twin knows only the first.
#[apply(test!)]
async fn a_connection_goes_to_the_first_usable_node(table: &Table) -> Result {
    let (first, second) = (Mute::to(table.address())?, Proxy::to(table.address())?);
    let urls = [first.address(), second.address()].map(|address| table.url_at(&address));
    let pool = TablePool::new(MySqlOptions::of(&urls))?;
    let twin = TablePool::new(MySqlOptions::of(&urls[..1]))?;
    let port = |conn: &Conn| format!("127.0.0.1:{}", conn.server().get_port());
    let near = pool.conn(SOON).await?;
    ensure_equal("in order", port(&near), first.address())?;
    near.done();
    first.mute();
    pool.forget_idle();
    ensure_unavailable("the twin", twin.conn(SHORT).await.map(drop))?;
    // Each attempt has a time limit, which one may miss on a machine that stops for a moment.
    let far = async {
        loop {
            if let Ok(far) = pool.conn(SHORT).await {
                return far;
            }
        }
    };
    let far = timeout(SOON, far).await.context("no second node")?;
    ensure_equal("beside one that is silent", port(&far), second.address())?;
    let (name, mut human) = (name(), table.outsider().await);
    let transaction = holds_the_row(&mut human, &name).await?;
    // Through the first one it could not be killed.
    let id = left_waiting(table, &name, far).await?;
    gone(table, id).await?;
    transaction.rollback().await?;
    ensure_invalid("an address", TablePool::new(MySqlOptions::of([&urls[0], "http://a"])).map(drop))
}
