//! The stock as a MySQL row: time limits for statements, and how a connection returns to the pool. The statements
//! stand in the strategies.
//!
//! 1. Outside a transaction each statement takes a connection from the pool and returns it at once, as in the course:
//!    [`read`], [`execute`]. In a transaction they share one: [`read_on`], [`read_locked`], [`execute_on`].
//! 2. A statement that waits for a row lock waits at most as long as the job may; then the server is told to end it. A plain
//!    read, START TRANSACTION and COMMIT wait for no row, and are only given up. Each limit has a minimum.
//! 3. A refused statement has changed nothing, and its connection returns to the pool ([`return_to_pool`]). A failed read
//!    has changed nothing either; a write without an answer may have been executed ([`Error::Unknown`]). If the caller is
//!    dropped, its connection is closed and its statement killed, done or not.

use super::{Job, Point, backstop::Backstop, session::Session};
use crate::{
    ctx::Ctx,
    error::{Error, RECORD_CHANGED, error_number},
    server::Server,
};
use oversell_lock::{
    Fence,
    mysql::{Conn, is_cut_off},
};
use sqlx::{
    Execute as _, Executor, FromRow, MySql, MySqlConnection, Row as _,
    mysql::{MySqlArguments, MySqlQueryResult, MySqlRow},
    query::{Query, QueryScalar},
};
use std::{io, time::Duration};
use tokio::time::timeout;

/// A writing statement with its values, not sent yet.
pub(crate) type Write<'q> = Query<'q, MySql, MySqlArguments>;

/// The least time limit of a statement, even with `wait_ms=0`: enough for a free row lock and a write to disk.
const MIN_STATEMENT_TIMEOUT: Duration = Duration::from_millis(250);

/// The least time limit of a statement that waits for no row, and the limit of a ROLLBACK: enough for a machine under load.
const MIN_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The least time limit of COMMIT, which is longer because a commit that is given up has an unknown outcome.
const MIN_COMMIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A deadlock was found, and this transaction was rolled back to end it.
pub const DEADLOCK: u16 = 1213;
/// A row lock was not acquired in time; only the statement was undone, the transaction stays open.
pub const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// `KILL QUERY` or a time limit has ended the statement.
const INTERRUPTED: u16 = 1317;

/// A row of `db_stock`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StockRow {
    pub(crate) count: i64,
    /// §1.7.3: grows with each write.
    pub(crate) version: i64,
    /// [003]: the highest fencing token written to the row.
    fence: u64,
}

impl<'r> FromRow<'r, MySqlRow> for StockRow {
    fn from_row(row: &'r MySqlRow) -> sqlx::Result<StockRow> {
        Ok(StockRow { count: row.try_get("count")?, version: row.try_get("version")?, fence: row.try_get("fence")? })
    }
}

impl StockRow {
    /// The highest fencing token written to the row; 0 if none was.
    pub(crate) fn fence(self) -> Fence {
        Fence(self.fence)
    }
}

/// Reads the job's row with `select`, which locks nothing, on a connection of its own. [`Error::NoProduct`] if there is none.
pub(crate) async fn read(ctx: &Ctx, job: &Job, select: &'static str) -> Result<StockRow, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let row = read_on(&mut conn, job, select).await;
    return_to_pool(conn, row)
}

/// As [`read`], on this connection.
pub(crate) async fn read_on(conn: &mut MySqlConnection, job: &Job, select: &'static str) -> Result<StockRow, Error> {
    job.observation.points().report_sent(|| select);
    let row = sqlx::query_as(select).bind(job.request.stock_id);
    let row = within_limit(job, row.fetch_optional(conn)).await?;
    row.ok_or(Error::NoProduct(job.request.stock_id))
}

/// Reads the count with `select`, waiting for the row lock as long as the job may. [`Error::NoProduct`] if there is no row.
pub(crate) async fn read_locked(conn: &mut Conn, job: &Job, select: &'static str) -> Result<i64, Error> {
    let select = sqlx::query_scalar(select).bind(job.request.stock_id);
    let count = scalar(conn, job, select).await?;
    count.ok_or(Error::NoProduct(job.request.stock_id))
}

/// Reads one value, waiting for row locks as long as the job may; `None` if there is no row.
pub(crate) async fn scalar<T>(
    conn: &mut Conn,
    job: &Job,
    select: QueryScalar<'_, MySql, T, MySqlArguments>,
) -> Result<Option<T>, Error>
where
    T: Send + Unpin,
    (T,): for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
{
    job.observation.points().report_sent(|| select.sql().to_owned());
    Session::of(conn).bounded(statement_timeout(job), select.fetch_optional(&mut **conn)).await.map_err(|e| refusal_error(e, job))
}

/// Executes a write on a connection of its own, and returns the number of changed rows. [`Error::Unknown`] without an answer.
pub(crate) async fn execute(ctx: &Ctx, job: &Job, write: Write<'_>) -> Result<u64, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let changed = execute_on(&mut conn, job, write).await;
    return_to_pool(conn, changed)
}

/// As [`execute`], on this connection.
pub(crate) async fn execute_on(conn: &mut Conn, job: &Job, write: Write<'_>) -> Result<u64, Error> {
    classify_write(execute_bounded(conn, job, write).await, job)
}

/// Inserts a row of `tb_lock` on a connection of its own, and returns a backstop that undoes it by its id; `None` if a
/// unique key refuses it, or the server rolled it back to end a deadlock. If the caller is cancelled meanwhile, the row is
/// undone once it is there; a row whose insert was not answered stays.
pub(crate) async fn insert<U>(
    ctx: &Ctx,
    job: &Job,
    row: Write<'static>,
    undo: fn(Ctx, u64) -> U,
) -> Result<Option<Backstop<()>>, Error>
where
    U: Future<Output = ()> + Send + 'static,
{
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let (ctx, limit) = (ctx.clone(), statement_timeout(job));
    let inserting = ctx.tasks.clone().spawn(async move {
        let done = Session::of(&conn).bounded(limit, row.execute(&mut *conn)).await;
        let undone = done.map(|done| undo(ctx.clone(), done.last_insert_id()));
        (conn, undone.map(|undone| Backstop::new(&ctx, undone)))
    });
    let (conn, inserted) = inserting.await.map_err(|e| Error::Internal(e.to_string()))?;
    let inserted = match inserted {
        Ok(row) => Ok(Some(row)),
        Err(sqlx::Error::Database(e)) if e.is_unique_violation() => Ok(None),
        Err(e) if error_number(&e) == Some(DEADLOCK) => Ok(None),
        Err(error) => classify_write(Err(error), job).map(|_| None),
    };
    return_to_pool(conn, inserted)
}

/// As [`execute_on`]; `false` if the server rolled the transaction back to end a deadlock.
pub(crate) async fn execute_or_deadlock(conn: &mut Conn, job: &Job, write: Write<'_>) -> Result<bool, Error> {
    match execute_bounded(conn, job, write).await {
        Err(e) if error_number(&e) == Some(DEADLOCK) => Ok(false),
        result => classify_write(result, job).map(|_| true),
    }
}

/// Reports the point `locked`, with the lock's fencing token if it has one.
pub(crate) async fn report_locked(job: &Job, fence: Option<Fence>) {
    match fence {
        Some(Fence(token)) => job.reach_with(Point::Locked, token).await,
        None => job.reach(Point::Locked).await,
    }
}

/// Begins a transaction. It ends with [`commit`], or with [`end_transaction`].
pub(crate) async fn begin(conn: &mut Conn, job: &Job) -> Result<(), Error> {
    within_limit(job, conn.execute("START TRANSACTION")).await?;
    Ok(())
}

/// Commits the transaction. Without an answer its outcome is unknown.
pub(crate) async fn commit(conn: &mut Conn, job: &Job) -> Result<(), Error> {
    let points = job.observation.points();
    points.report_sent(|| "COMMIT");
    let limit = job.wait_left().max(MIN_COMMIT_TIMEOUT);
    let done = timeout(limit, conn.execute("COMMIT")).await;
    let done = done.unwrap_or_else(|_| Err(no_answer(limit)));
    let answer = done.as_ref();
    points.report_answer("COMMIT", answer.map_or_else(printed_refusal, |_| "Query OK".to_owned()));
    classify_write(done, job).map(drop)
}

/// Returns `outcome`, and the connection to the pool: after a refusal with a ROLLBACK, after `Ok`, which must mean committed,
/// without. After any other error, or an unanswered ROLLBACK, closes the connection, which ends the transaction.
pub(crate) async fn end_transaction<T>(mut conn: Conn, outcome: Result<T, Error>) -> Result<T, Error> {
    if outcome.as_ref().is_err_and(is_refusal)
        && !matches!(timeout(MIN_ANSWER_TIMEOUT, conn.execute("ROLLBACK")).await, Ok(Ok(_)))
    {
        return outcome;
    }
    return_to_pool(conn, outcome)
}

/// Awaits a statement that waits for no row, as long as the job may still wait, and at least 1 s; else [`Error::Unavailable`].
pub(crate) async fn within_limit<T>(job: &Job, answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Error> {
    let limit = job.wait_left().max(MIN_ANSWER_TIMEOUT);
    let answer = timeout(limit, answer).await;
    Ok(answer.unwrap_or_else(|_| Err(no_answer(limit)))?)
}

/// The error of a statement without an answer within `limit`: an I/O error, `TimedOut`.
fn no_answer(limit: Duration) -> sqlx::Error {
    let words = format!("no answer within {} ms", limit.as_millis());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, words))
}

/// Returns the connection to the pool if `outcome` is [answered](is_answered). If it is not, the connection is closed and
/// the server's work for it is killed.
pub(crate) fn return_to_pool<T>(conn: Conn, outcome: Result<T, Error>) -> Result<T, Error> {
    if is_answered(&outcome) {
        conn.done();
    }
    outcome
}

/// Whether the connection can be used again: after `Ok` or a refusal. Any other error counts as no answer.
pub(crate) fn is_answered<T>(outcome: &Result<T, Error>) -> bool {
    outcome.as_ref().err().is_none_or(is_refusal)
}

/// Whether the server or this program has refused, so that no statement is in progress; `false` for errors of the server
/// that an operator must fix.
fn is_refusal(error: &Error) -> bool {
    use Error::{NoProduct, RowChanged, Seckill, SoldOut, Timeout};
    matches!(error, SoldOut | NoProduct(_) | Timeout { .. } | RowChanged | Seckill(_))
}

/// The rest of the job's wait, but at least [`MIN_STATEMENT_TIMEOUT`].
fn statement_timeout(job: &Job) -> Duration {
    job.wait_left().max(MIN_STATEMENT_TIMEOUT)
}

/// As [`execute_on`]; `false` if a unique key refuses the row.
pub(crate) async fn execute_or_duplicate(conn: &mut Conn, job: &Job, write: Write<'_>) -> Result<bool, Error> {
    match execute_bounded(conn, job, write).await {
        Err(sqlx::Error::Database(e)) if e.is_unique_violation() => Ok(false),
        result => classify_write(result, job).map(|_| true),
    }
}

/// Executes a write within the limit of the job, and reports it with its answer.
async fn execute_bounded(conn: &mut Conn, job: &Job, write: Write<'_>) -> Result<MySqlQueryResult, sqlx::Error> {
    let points = job.observation.points();
    let line = write.sql();
    points.report_sent(|| line);
    let done = Session::of(conn).bounded(statement_timeout(job), write.execute(&mut **conn)).await;
    points.report_answer(line, done.as_ref().map_or_else(printed_refusal, rows_affected));
    done
}

/// A failure as a replay shows it: `ERROR 1213`, or the error's own text if it has no number.
fn printed_refusal(error: &sqlx::Error) -> String {
    match error_number(error) {
        Some(code) => format!("ERROR {code}"),
        None => error.to_string(),
    }
}

/// The answer to a write as the `mysql` client prints it: `Query OK, 1 row affected`.
fn rows_affected(done: &MySqlQueryResult) -> String {
    match done.rows_affected() {
        1 => "Query OK, 1 row affected".to_owned(),
        rows => format!("Query OK, {rows} rows affected"),
    }
}

/// Classifies the result of a write: the number of changed rows, a refusal (nothing changed), or unanswered: [`Error::Unknown`].
fn classify_write(result: Result<MySqlQueryResult, sqlx::Error>, job: &Job) -> Result<u64, Error> {
    match result {
        Ok(done) => Ok(done.rows_affected()),
        Err(e @ sqlx::Error::Database(_)) if !is_cut_off(&e) => Err(refusal_error(e, job)),
        Err(e) => Err(Error::unknown_outcome(Server::MySql, e)),
    }
}

/// The error of a refused statement, which changed nothing: a timeout for a contended row, [`Error::RowChanged`] for one
/// that has changed, else the server's.
fn refusal_error(error: sqlx::Error, job: &Job) -> Error {
    if error_number(&error) != Some(RECORD_CHANGED) && is_contended(&error) {
        job.timed_out("row in MySQL")
    } else {
        error.into()
    }
}

/// Whether the server gave up because another transaction holds the row or has changed it, or because the time was over.
pub(crate) fn is_contended(error: &sqlx::Error) -> bool {
    matches!(error_number(error), Some(DEADLOCK | RECORD_CHANGED | LOCK_WAIT_TIMEOUT | INTERRUPTED))
}
