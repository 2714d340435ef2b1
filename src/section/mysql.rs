//! The stock as a row of MySQL: how a statement is bounded, and how its connection goes back. The statements themselves
//! stand in the strategies.
//!
//! 1. Where the course has no transaction, each statement takes a connection out of the pool and gives it back at once,
//!    as there: [`read`], [`execute`]. In a transaction they share one: [`read_on`], [`read_locked`], [`execute_on`].
//! 2. A statement that may wait for a row lock waits as long as the job may; then the server is told to end it.
//! 3. What the server has refused has changed nothing, and its connection goes back ([`given_back`]). A read that fails
//!    has changed nothing either; a write that gets no answer may have been done, and says so ([`Error::Unknown`]).

use super::{Job, Point};
use crate::{ctx::Ctx, error::Error, server::Server};
use oversell_lock::{Fence, mysql::Conn};
use sqlx::{
    Executor, FromRow, MySql, MySqlConnection,
    mysql::{MySqlArguments, MySqlQueryResult, MySqlRow},
    query::{Query, QueryScalar},
};
use std::time::Duration;

/// One write with its arguments.
pub(crate) type Write<'q> = Query<'q, MySql, MySqlArguments>;

/// A row lock that is free is had within this, even by a job that may not wait, and what is had is written on a disk.
const SHORTEST: Duration = Duration::from_millis(250);

const DEADLOCK: u16 = 1213;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const INTERRUPTED: u16 = 1317;

/// The stock row.
#[derive(Debug, Clone, Copy, FromRow)]
pub(crate) struct Row {
    pub(crate) count: i64,
    /// §1.7.3: grows with each write.
    pub(crate) version: i64,
    /// [003]: the highest token that the row has seen.
    fence: u64,
}

impl Row {
    pub(crate) fn fence(self) -> Fence {
        Fence(self.fence)
    }
}

/// Reads the job's row with `select`, which locks nothing, on a connection of its own.
pub(crate) async fn read(ctx: &Ctx, job: &Job, select: &'static str) -> Result<Row, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let row = read_on(&mut conn, job, select).await;
    given_back(conn, row)
}

/// [`read`], on this connection.
pub(crate) async fn read_on(
    conn: &mut MySqlConnection,
    job: &Job,
    select: &'static str,
) -> Result<Row, Error> {
    let row = sqlx::query_as(select)
        .bind(job.request.stock_id)
        .fetch_optional(conn)
        .await?;
    row.ok_or(Error::NoProduct(job.request.stock_id))
}

/// Reads the count with `select`, waiting for the row lock as long as the job may.
pub(crate) async fn read_locked(
    conn: &mut Conn,
    job: &Job,
    select: &'static str,
) -> Result<i64, Error> {
    let select = sqlx::query_scalar(select).bind(job.request.stock_id);
    let count = scalar(conn, job, select).await?;
    count.ok_or(Error::NoProduct(job.request.stock_id))
}

/// Reads one value, waiting as long as the job may for who stands in the way.
pub(crate) async fn scalar<T>(
    conn: &mut Conn,
    job: &Job,
    select: QueryScalar<'_, MySql, T, MySqlArguments>,
) -> Result<Option<T>, Error>
where
    T: Send + Unpin,
    (T,): for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
{
    let session = conn.session();
    session
        .bounded(limit(job), select.fetch_optional(&mut **conn))
        .await
        .map_err(|e| refused(e, job))
}

/// Carries out a write, and says how many rows it has changed.
pub(crate) async fn execute(ctx: &Ctx, job: &Job, write: Write<'_>) -> Result<u64, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let changed = execute_on(&mut conn, job, write).await;
    given_back(conn, changed)
}

/// [`execute`], on this connection.
pub(crate) async fn execute_on(conn: &mut Conn, job: &Job, write: Write<'_>) -> Result<u64, Error> {
    answered(bounded(conn, job, write).await, job)
}

/// As [`execute_on`], but `false` where the server rolled the transaction back to end a deadlock.
pub(crate) async fn execute_or_deadlock(
    conn: &mut Conn,
    job: &Job,
    write: Write<'_>,
) -> Result<bool, Error> {
    match bounded(conn, job, write).await {
        Err(e) if has_number(&e, &[DEADLOCK]) => Ok(false),
        result => answered(result, job).map(|_| true),
    }
}

/// Comes by the point `locked`, with the fencing token of the lock, where it has one.
pub(crate) async fn locked(job: &Job, fence: Option<Fence>) {
    match fence {
        Some(Fence(token)) => job.tell(Point::Locked, token).await,
        None => job.at(Point::Locked).await,
    }
}

/// Begins a transaction. It ends with [`commit`], or with [`rolled_back`].
pub(crate) async fn begin(conn: &mut MySqlConnection) -> Result<(), Error> {
    conn.execute("START TRANSACTION").await?;
    Ok(())
}

/// Commits.
pub(crate) async fn commit(conn: &mut Conn, job: &Job) -> Result<(), Error> {
    answered(conn.execute("COMMIT").await, job).map(drop)
}

/// What a transaction came to; what it was refused for is rolled back.
pub(crate) async fn rolled_back<T>(mut conn: Conn, outcome: Result<T, Error>) -> Result<T, Error> {
    if outcome.as_ref().is_err_and(is_refusal) {
        conn.execute("ROLLBACK").await?;
    }
    given_back(conn, outcome)
}

/// What a statement came to. Its connection goes back where the server has answered it; where it has not, the connection
/// is closed, and whatever the server is still doing for it is ended.
pub(crate) fn given_back<T>(conn: Conn, outcome: Result<T, Error>) -> Result<T, Error> {
    if is_answered(&outcome) {
        conn.done();
    }
    outcome
}

/// Whether the server has answered, and its connection can be used on.
pub(crate) fn is_answered<T>(outcome: &Result<T, Error>) -> bool {
    outcome.as_ref().err().is_none_or(is_refusal)
}

/// Whether this is a refusal, by the server or by us, after which nothing is under way.
fn is_refusal(error: &Error) -> bool {
    use Error::{AlreadyOrdered, NoProduct, NotHad, SoldOut};
    matches!(
        error,
        SoldOut | NoProduct(_) | NotHad { .. } | AlreadyOrdered
    )
}

/// How long a statement of this job may wait.
fn limit(job: &Job) -> Duration {
    job.wait_left().max(SHORTEST)
}

/// As [`execute_on`], but `false` where a unique key refuses the row.
pub(crate) async fn execute_or_duplicate(
    conn: &mut Conn,
    job: &Job,
    write: Write<'_>,
) -> Result<bool, Error> {
    match bounded(conn, job, write).await {
        Err(sqlx::Error::Database(e)) if e.is_unique_violation() => Ok(false),
        result => answered(result, job).map(|_| true),
    }
}

async fn bounded(
    conn: &mut Conn,
    job: &Job,
    write: Write<'_>,
) -> Result<MySqlQueryResult, sqlx::Error> {
    conn.session()
        .bounded(limit(job), write.execute(&mut **conn))
        .await
}

/// What a write came to: done, refused by the server (nothing changed), or without an answer.
fn answered(result: Result<MySqlQueryResult, sqlx::Error>, job: &Job) -> Result<u64, Error> {
    match result {
        Ok(done) => Ok(done.rows_affected()),
        Err(e @ sqlx::Error::Database(_)) => Err(refused(e, job)),
        Err(e) => Err(Error::Unknown {
            server: Server::MySql.name(),
            reason: e.to_string(),
        }),
    }
}

/// What an error of the server means for a statement that changed nothing: others had the row.
fn refused(error: sqlx::Error, job: &Job) -> Error {
    if is_contended(&error) {
        job.not_had("row in MySQL")
    } else {
        error.into()
    }
}

/// Whether the server gave up because somebody else holds the row.
pub(crate) fn is_contended(error: &sqlx::Error) -> bool {
    has_number(error, &[DEADLOCK, LOCK_WAIT_TIMEOUT, INTERRUPTED])
}

fn has_number(error: &sqlx::Error, numbers: &[u16]) -> bool {
    error
        .as_database_error()
        .and_then(|e| e.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>())
        .is_some_and(|e| numbers.contains(&e.number()))
}
