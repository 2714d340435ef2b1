//! One of the two transactions: its connection, and how it is begun again.
//!
//! 1. A statement is sent by a task of its own, so that the other transaction goes on while it waits.
//! 2. A transaction that the server has ended is begun again from its first statement, as often as [`MAX_ATTEMPTS`] allows,
//!    with pauses that grow and differ. A single statement is never repeated: what the transaction had read and written
//!    before is gone.
//!
//! What it survives: a retry that the server ends again. **What breaks it**: that the server ends the last of its
//! [`MAX_ATTEMPTS`] attempts too; then the error stays.
//!
//! Next: `stock/strategies/select_share.rs`, where a strategy retries.

use super::{
    lesson::{DEADLOCK, LOCK_WAIT_TIMEOUT, Side},
    step::DeadlockStep,
};
use crate::{
    ctx::Ctx,
    error::{Error, error_number},
};
use backon::{ExponentialBuilder, RetryableWithContext};
use oversell_lock::mysql::Conn;
use sqlx::Executor;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often a whole transaction is begun, the first time included.
const MAX_ATTEMPTS: usize = 4;

/// The first pause before a transaction is begun again; each is drawn at random, and the next is twice as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What the server answered to one statement.
pub(super) type StatementResult = Result<(), sqlx::Error>;

/// One of the two transactions: its connection, and what it is doing.
pub(super) struct Transaction {
    pub(super) id: u64,
    pub(super) state: TransactionState,
    /// The server has ended it with an error.
    pub(super) failed: bool,
}

/// What a transaction is doing, and where its connection is. One that the server has ended is idle, with `failed` set.
pub(super) enum TransactionState {
    Idle(Conn),
    /// The connection has been taken for a statement or a retry.
    Sent,
    /// The statement of this step waited for a row lock; the task returns the connection with the answer, not taken yet.
    Waiting(usize, JoinHandle<(Conn, StatementResult)>),
}

impl Transaction {
    /// Takes a connection whose lock waits end after `wait_s` seconds.
    pub(super) async fn open(ctx: &Ctx, wait_s: u32) -> Result<Self, Error> {
        let mut conn = ctx.mysql(ctx.config.default_wait()).await?;
        conn.execute(format!("SET SESSION innodb_lock_wait_timeout = {wait_s}").as_str()).await?;
        let id = sqlx::query_scalar("SELECT CONNECTION_ID()").fetch_one(&mut *conn).await?;
        Ok(Self { id, state: TransactionState::Idle(conn), failed: false })
    }

    /// Takes the connection for the next statement. Fails if the last statement has no answer yet.
    fn take_idle_conn(&mut self) -> Result<Conn, Error> {
        match std::mem::replace(&mut self.state, TransactionState::Sent) {
            TransactionState::Idle(conn) => Ok(conn),
            _ => Err(Error::Internal("a script sends before the last answer".into())),
        }
    }

    /// Sends a statement in a task, which returns the connection with the answer. Fails if the last one has no answer yet.
    pub(super) fn send(&mut self, sql: String) -> Result<JoinHandle<(Conn, StatementResult)>, Error> {
        let mut conn = self.take_idle_conn()?;
        Ok(tokio::spawn(async move {
            let answer = conn.execute(sql.as_str()).await.map(drop);
            (conn, answer)
        }))
    }

    /// Begins the whole transaction again, with growing pauses, until it commits or [`MAX_ATTEMPTS`] is reached. Returns every
    /// statement of these attempts; the last one is COMMIT only if it committed. Fails at once on any error but 1213 and 1205.
    pub(super) async fn retry_until_committed(&mut self, side: Side, sql: Vec<String>) -> Result<Vec<DeadlockStep>, Error> {
        let pauses =
            ExponentialBuilder::default().with_min_delay(FIRST_RETRY_PAUSE).with_max_times(MAX_ATTEMPTS - 2).with_jitter();
        let whole = |(mut conn, mut steps): (Conn, Vec<DeadlockStep>)| async {
            let outcome = attempt_once(&mut conn, side, &sql, &mut steps).await;
            ((conn, steps), outcome)
        };
        let begun = (self.take_idle_conn()?, Vec::new());
        let ((conn, steps), outcome) = whole.retry(pauses).context(begun).when(Option::is_none).await;
        self.state = TransactionState::Idle(conn);
        match outcome {
            Err(Some(error)) => Err(error),
            _ => Ok(steps),
        }
    }

    /// Restores the timeout of the connection, and gives it back.
    pub(super) async fn close(mut self) -> Result<(), Error> {
        let mut conn = self.take_idle_conn()?;
        conn.execute("SET SESSION innodb_lock_wait_timeout = DEFAULT").await?;
        conn.done();
        Ok(())
    }
}

/// Runs the whole transaction from its first statement, and adds each statement to `steps`. Fails with `None` if the server
/// ended it because of another one.
async fn attempt_once(conn: &mut Conn, side: Side, sql: &[String], steps: &mut Vec<DeadlockStep>) -> Result<(), Option<Error>> {
    let attempt = steps.last().map_or(1, |step| step.attempt) + 1;
    for sql in sql {
        let answer = conn.execute(sql.as_str()).await;
        let failure = answer.err().map(deadlock_or_timeout).transpose();
        let (error, message) = failure.map_err(Some)?.unzip();
        steps.push(DeadlockStep { error, message, ..DeadlockStep::unanswered(side, attempt, sql.clone()) });
        if error.is_some() {
            if error == Some(LOCK_WAIT_TIMEOUT) {
                steps.push(roll_back(conn, side, attempt).await.map_err(Some)?);
            }
            return Err(None);
        }
    }
    Ok(())
}

/// Rolls back a transaction that error 1205 has left open, and returns that as a step.
pub(super) async fn roll_back(conn: &mut Conn, side: Side, attempt: usize) -> Result<DeadlockStep, Error> {
    let sql = "ROLLBACK".to_owned();
    conn.execute(sql.as_str()).await?;
    Ok(DeadlockStep::unanswered(side, attempt, sql))
}

/// Number and message of errors 1213 and 1205; every other error is returned.
pub(super) fn deadlock_or_timeout(error: sqlx::Error) -> Result<(u16, String), Error> {
    let number = error_number(&error).filter(|number| [DEADLOCK, LOCK_WAIT_TIMEOUT].contains(number));
    match (number, error.as_database_error()) {
        (Some(number), Some(answer)) => Ok((number, answer.message().to_owned())),
        _ => Err(error.into()),
    }
}
