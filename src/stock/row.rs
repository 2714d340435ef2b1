//! The stock as a row of MySQL: the statements that the strategies are made of.
//!
//! Each is static SQL. A read that fails has changed nothing; a write that gets no answer may have been
//! done, and says so ([`Error::Unknown`]).

use super::{Deducted, Job, Server};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::Fence;
use sqlx::{Executor, MySqlConnection, mysql::MySqlQueryResult};
use std::time::Duration;

const WRITE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?";

/// A row lock that is free is had within this, even by a job that may not wait.
const SHORTEST: Duration = Duration::from_millis(50);

const DEADLOCK: u16 = 1213;
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// The stock row as the version strategies read it.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(super) struct Row {
    pub(super) count: i64,
    pub(super) version: i64,
}

/// §1.3: what the shelf shows. A plain read locks nothing.
pub(super) async fn read(conn: &mut MySqlConnection, id: i64) -> Result<Row, Error> {
    let row = sqlx::query_as("SELECT CAST(count AS SIGNED) AS count, version FROM db_stock WHERE id = ?")
        .bind(id)
        .fetch_optional(conn)
        .await?;
    row.ok_or(Error::NoProduct(id))
}

/// §1.3: writes what was worked out from an earlier read, whatever the row holds by now.
pub(super) async fn write(conn: &mut MySqlConnection, id: i64, count: i64) -> Result<(), Error> {
    answered(sqlx::query(WRITE).bind(count).bind(id).execute(conn).await)?;
    Ok(())
}

/// [003]: shows a token to the row, which from now on refuses every lower one: `false` where it has seen one as high.
pub(super) async fn show(conn: &mut MySqlConnection, id: i64, fence: Fence) -> Result<bool, Error> {
    let shown = sqlx::query("UPDATE db_stock SET fence = ? WHERE id = ? AND fence < ?")
        .bind(fence.0)
        .bind(id)
        .bind(fence.0)
        .execute(conn)
        .await;
    Ok(answered(shown)? == 1)
}

/// [003]: the highest token that the row has seen.
pub(super) async fn fence(conn: &mut MySqlConnection, id: i64) -> Result<Fence, Error> {
    let seen = sqlx::query_scalar("SELECT fence FROM db_stock WHERE id = ?").bind(id).fetch_optional(conn).await?;
    seen.map(Fence).ok_or(Error::NoProduct(id))
}

/// [003]: writes as [`write`] does, but only where no higher token was shown meanwhile: else `false`.
pub(super) async fn write_fenced(conn: &mut MySqlConnection, id: i64, count: i64, fence: Fence) -> Result<bool, Error> {
    let written = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND fence = ?")
        .bind(count)
        .bind(id)
        .bind(fence.0)
        .execute(conn)
        .await;
    Ok(answered(written)? == 1)
}

/// §1.7.2: the count, under an exclusive lock of the row.
pub(super) const FOR_UPDATE: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
/// §1.7.2: the count, under a shared lock of the row.
pub(super) const SHARED: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? LOCK IN SHARE MODE";

/// Reads the count with one of the two statements above, waiting for the row lock as long as the job may.
pub(super) async fn read_locked(conn: &mut MySqlConnection, job: &Job, select: &'static str) -> Result<i64, Error> {
    let not_had = || Error::NotHad { what: "row in db_stock".into(), waited: job.wait };
    let read = sqlx::query_scalar(select).bind(job.stock_id).fetch_optional(conn);
    match tokio::time::timeout(job.wait_left().max(SHORTEST), read).await {
        Ok(Ok(count)) => count.ok_or(Error::NoProduct(job.stock_id)),
        Ok(Err(e)) if has_number(&e, LOCK_WAIT_TIMEOUT) => Err(not_had()),
        Ok(Err(e)) => Err(e.into()),
        Err(_) => Err(not_had()),
    }
}

/// As [`write`], but `false` where the server rolled the transaction back to end a deadlock.
pub(super) async fn write_or_deadlock(conn: &mut MySqlConnection, id: i64, count: i64) -> Result<bool, Error> {
    match sqlx::query(WRITE).bind(count).bind(id).execute(conn).await {
        Err(e) if has_number(&e, DEADLOCK) => Ok(false),
        result => answered(result).map(|_| true),
    }
}

/// The critical section of most strategies: read, stay as long as was asked, write back one less. It is only as
/// safe as what surrounds it.
pub(super) async fn read_then_write(ctx: &Ctx, job: &Job, fence: Option<Fence>) -> Result<Deducted, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let count = read(&mut conn, job.stock_id).await?.count;
    if count <= 0 {
        conn.done();
        return Err(Error::SoldOut);
    }
    job.inside().await;
    write(&mut conn, job.stock_id, count - 1).await?;
    conn.done();
    Ok(Deducted { remaining: Some(count - 1), fence, retries: 0, lock: None })
}

/// Begins a transaction. It ends with [`commit`]; a connection that is dropped before is rolled back.
pub(super) async fn begin(conn: &mut MySqlConnection) -> Result<(), Error> {
    conn.execute("START TRANSACTION").await?;
    Ok(())
}

/// Commits.
pub(super) async fn commit(conn: &mut MySqlConnection) -> Result<(), Error> {
    answered(conn.execute("COMMIT").await)?;
    Ok(())
}

/// Gives up a transaction that has written nothing.
pub(super) async fn rollback(conn: &mut MySqlConnection) -> Result<(), Error> {
    conn.execute("ROLLBACK").await?;
    Ok(())
}

/// What a write came to: done, refused by the server (nothing changed), or without an answer.
pub(super) fn answered(result: Result<MySqlQueryResult, sqlx::Error>) -> Result<u64, Error> {
    match result {
        Ok(done) => Ok(done.rows_affected()),
        Err(e @ sqlx::Error::Database(_)) => Err(e.into()),
        Err(e) => Err(Error::Unknown { server: Server::MySql.name(), reason: e.to_string() }),
    }
}

/// Whether the server gave up because somebody else holds the row.
pub(crate) fn is_contended(error: &sqlx::Error) -> bool {
    has_number(error, DEADLOCK) || has_number(error, LOCK_WAIT_TIMEOUT)
}

fn has_number(error: &sqlx::Error, number: u16) -> bool {
    error
        .as_database_error()
        .and_then(|e| e.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>())
        .is_some_and(|e| e.number() == number)
}
