//! A row of `tb_lock`: how both table locks insert, renew and delete it.
//!
//! 1. Insert it. If the name exists, another holds the lock: try again about every 50 ms, without a connection in
//!    between. A contender with a lease first deletes the row of that name if its lease has ended (the sweep).
//! 2. Renew: extend its end, by name **and** owner, if it has not passed by the database's clock.
//! 3. Delete it, by name **and** owner, until the server has answered.
//!
//! The insert runs to its end in a task of its own, even if the caller is dropped. Each insert has a fresh owner, so
//! what an unanswered one may have written can be deleted without harm to others.
//!
//! Next to read: `pool.rs`.

use super::{
    connection_id::ConnectionId,
    failure::{StatementFailure, is_contention, no_answer_error},
    pool::{Conn, TablePool},
};
use crate::{Holder, Lease, LockError, Owner};
use futures::FutureExt;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

/// The mean pause between two attempts to insert; it is random, so that waiters do not poll in step. Shorter, and waiters
/// would load the database; longer, and the lock would lie idle.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long the server may take for an answer, in addition to the caller's own wait.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an insert may wait for a row lock before the server is asked whose row is in its way, and then between two
/// such questions.
const ROW_LOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Added to an insert's wait, [`ROW_LOCK_CHECK_INTERVAL`] at most, before the server is first asked whose row is in the way,
/// because an insert that does not wait takes time too.
const FIRST_ROW_LOCK_CHECK_DELAY: Duration = Duration::from_millis(100);

/// The first pause between attempts to delete a row, or to kill a connection, while the server does not answer; each further
/// one is twice as long.
const FIRST_DELETE_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts to delete a row or to kill a connection, and the pause after a refused deletion. A server
/// that restarts is noticed within it.
const MAX_DELETE_PAUSE: Duration = Duration::from_secs(5);

/// The width of `tb_lock.lock_name`, in characters; a longer name is refused.
const MAX_NAME_LENGTH: usize = 50;

/// Makes the table `tb_lock` if it is missing.
const CREATE_TABLE: &str = include_str!("tb_lock.sql");
/// Inserts a contender's row. Its lease ends the given microseconds from now by the database's clock; NULL is no lease.
const INSERT: &str = "INSERT INTO tb_lock (lock_name, class_name, method_name, server_name, thread_name, create_time, \
                      `desc`, owner, holds, expires_at) \
                      VALUES (?, ?, ?, ?, ?, NOW(), ?, ?, 1, NOW(3) + INTERVAL ? MICROSECOND)";
/// Counts the rows of a name whose lease has ended. Waiters read that before they delete, because a plain read locks nothing
/// and so does not block the holder.
const COUNT_EXPIRED: &str = "SELECT COUNT(*) FROM tb_lock WHERE lock_name = ? AND expires_at <= NOW(3)";
/// Deletes the row of a name if its lease has ended by the database's clock.
const DELETE_EXPIRED: &str = "DELETE FROM tb_lock WHERE lock_name = ? AND expires_at <= NOW(3)";
/// Writes the hold count and extends the lease, but never shortens it, if the row is the owner's and its lease has not ended.
const RENEW: &str = "UPDATE tb_lock SET holds = ?, expires_at = GREATEST(expires_at, NOW(3) + INTERVAL ? MICROSECOND) \
                     WHERE lock_name = ? AND owner = ? AND expires_at > NOW(3)";
/// Reads the owner, and the rest of the lease in microseconds: negative if it has ended and the row has not been swept, NULL
/// without a lease.
const SELECT_HOLDER: &str =
    "SELECT COALESCE(owner, ''), TIMESTAMPDIFF(MICROSECOND, NOW(3), expires_at) FROM tb_lock WHERE lock_name = ?";
/// Deletes the row of a name, whoever has it.
const FORCE_UNLOCK: &str = "DELETE FROM tb_lock WHERE lock_name = ?";
/// Deletes the row of a name if it is the owner's.
const DELETE: &str = "DELETE FROM tb_lock WHERE lock_name = ? AND owner = ?";

/// What a row tells people about its contender. No lock depends on it. Each text is cut to the width of its column, and an
/// empty one is stored as NULL. The column `thread_name` gets the name of the thread that inserts.
///
/// ```
/// use oversell_lock::mysql::RowDescription;
///
/// let description = RowDescription {
///     class: "reports".into(),
///     method: "nightly".into(),
///     ..RowDescription::default()
/// };
/// ```
#[derive(Debug, Clone, Default)]
pub struct RowDescription {
    /// `class_name`, of at most 100 characters: the module.
    pub class: String,
    /// `method_name`, of at most 50: the function.
    pub method: String,
    /// `server_name`, of at most 50: the instance.
    pub server: String,
    /// `desc`, of at most 100: what for.
    pub desc: String,
}

/// A contender for the row of one lock: its pool, the name, and what the row says about it.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    pub(super) pool: TablePool,
    pub(super) name: String,
    pub(super) description: RowDescription,
}

/// A row that is, or may be, in the table. Dropping it deletes it in the background.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) pool: TablePool,
    pub(super) name: String,
    owner: Owner,
    /// Whether there is nothing to delete, so that the drop does nothing.
    is_gone: AtomicBool,
}

impl TablePool {
    /// Makes the table `tb_lock` if it is missing; the account needs the right to. An existing table is left as it is, and
    /// compares names by its own column: a table of an earlier version treats `Stock` and `stock` as one lock until `lock_name`
    /// has a binary collation without padding (`utf8mb4_nopad_bin` in MariaDB, `utf8mb4_0900_bin` in MySQL 8).
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may be made or not; calling it again is safe.
    pub async fn create_table(&self) -> Result<(), LockError> {
        self.run_statement(REPLY_TIMEOUT, |conn| sqlx::query(CREATE_TABLE).execute(conn).boxed()).await?;
        Ok(())
    }
}

impl Contender {
    pub(super) fn new(pool: &TablePool, name: &str) -> Self {
        Self { pool: pool.clone(), name: name.to_owned(), description: RowDescription::default() }
    }

    pub(super) fn taken_error(&self, waited: Duration) -> LockError {
        LockError::taken(&self.name, waited)
    }

    /// Runs `take` until the pool is being closed, and observes how it ended.
    ///
    /// # Cancel safety
    ///
    /// As that of `take`.
    pub(super) async fn report_acquire<T>(
        &self,
        kind: &'static str,
        take: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        let take = self.pool.while_open(take);
        self.pool.observer().report_acquire(kind, &self.name, take).await
    }

    /// Returns the owner of the present row and the rest of its lease; `None` if there is no row, or its lease has ended.
    pub(super) async fn holder(&self) -> Result<Option<Holder>, LockError> {
        let row = self.pool.run_statement(REPLY_TIMEOUT, |conn| {
            let holder = sqlx::query_as::<_, (String, Option<i64>)>(SELECT_HOLDER);
            holder.bind(self.name.clone()).fetch_optional(conn).boxed()
        });
        let row = row.await?;
        let left = |lease_micros| Duration::from_micros(u64::try_from(lease_micros).unwrap_or_default());
        let holder = row.map(|(id, lease_micros)| Holder { id, remaining: lease_micros.map(left) });
        Ok(holder.filter(|holder| holder.remaining != Some(Duration::ZERO)))
    }

    /// Deletes the row, whoever has it; returns whether somebody had the lock: not if its lease had ended.
    pub(super) async fn force_unlock(&self) -> Result<bool, LockError> {
        let deleted = self.pool.run_statement(REPLY_TIMEOUT, |conn| {
            let name = self.name.clone();
            async move {
                sqlx::query(DELETE_EXPIRED).bind(&name).execute(&mut *conn).await?;
                sqlx::query(FORCE_UNLOCK).bind(&name).execute(conn).await
            }
            .boxed()
        });
        Ok(deleted.await?.rows_affected() > 0)
    }

    /// Inserts the row, waiting at most `wait`; returns it and when the insert was sent. With a lease, a row in its way is
    /// deleted once that row's lease has ended. [`LockError::Taken`] if the wait is over, [`LockError::Unavailable`] if no
    /// connection was free for the first try; a name of another length is [`LockError::Invalid`].
    pub(super) async fn insert_row(&self, lease: Option<Lease>, wait: Duration) -> Result<(Row, Instant), LockError> {
        if self.name.is_empty() {
            return Err(LockError::invalid("name", "must not be empty"));
        }
        if self.name.chars().count() > MAX_NAME_LENGTH {
            return Err(LockError::invalid(&self.name, "a name has 1 to 50 characters"));
        }
        let start = Instant::now();
        let time_left = || wait.saturating_sub(start.elapsed());
        let mut was_taken = false;
        loop {
            let conn = match self.pool.conn(time_left()).await {
                Err(_) if was_taken && time_left().is_zero() => return Err(self.taken_error(wait)),
                conn => conn?,
            };
            let lease_start = Instant::now();
            if let Some(row) = self.insert(conn, lease, time_left()).await? {
                return Ok((row, lease_start));
            }
            was_taken = true;
            if lease.is_some() && self.delete_if_expired().await? {
                continue;
            }
            if time_left().is_zero() {
                return Err(self.taken_error(wait));
            }
            sleep(POLL_INTERVAL.mul_f64(0.5 + fastrand::f64()).min(time_left())).await;
        }
    }

    /// Inserts once; `None` if another owner's row is there, even one of a transaction that has not ended after `wait`,
    /// [`ROW_LOCK_CHECK_INTERVAL`] at most; or if the server ended the insert because of others.
    ///
    /// The statement runs to its end in a task of its own: a caller that is dropped meanwhile drops the reply, and with
    /// it the row.
    async fn insert(&self, conn: Conn, lease: Option<Lease>, wait: Duration) -> Result<Option<Row>, LockError> {
        let row = Row::without_deletion(&self.pool, &self.name, self.pool.owner());
        let (reply, answer) = oneshot::channel();
        self.pool.tasks().spawn(row.insert(conn, self.description.clone(), lease, wait, reply));
        answer.await.unwrap_or_else(|_| Err(no_answer_error()))
    }

    /// Deletes the row of this name if its lease has ended; returns whether there was one. Without a free connection it
    /// returns `false`.
    async fn delete_if_expired(&self) -> Result<bool, LockError> {
        let swept = self.pool.run_statement(REPLY_TIMEOUT, |conn| {
            let name = self.name.clone();
            async move {
                let expired: i64 = sqlx::query_scalar(COUNT_EXPIRED).bind(&name).fetch_one(&mut *conn).await?;
                if expired == 0 {
                    return Ok(false);
                }
                let swept = sqlx::query(DELETE_EXPIRED).bind(&name).execute(conn).await?;
                Ok(swept.rows_affected() > 0)
            }
            .boxed()
        });
        match swept.await {
            Err(StatementFailure::Unsent(_)) => Ok(false),
            swept => Ok(swept?),
        }
    }
}

impl Row {
    /// A row that is not in the table, or that the caller deletes: its drop does nothing.
    fn without_deletion(pool: &TablePool, name: &str, owner: Owner) -> Self {
        Self { pool: pool.clone(), name: name.to_owned(), owner, is_gone: AtomicBool::new(true) }
    }

    /// Inserts the row and replies as [`Contender::insert`] returns; then undoes an insert without an answer, or one that still
    /// waits for another owner's row.
    async fn insert(
        self,
        mut conn: Conn,
        description: RowDescription,
        lease: Option<Lease>,
        wait: Duration,
        reply: oneshot::Sender<Result<Option<Self>, LockError>>,
    ) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let insert = sqlx::query(INSERT)
            .bind(&self.name)
            .bind(first_characters(&description.class, 100))
            .bind(first_characters(&description.method, 50))
            .bind(first_characters(&description.server, 50))
            .bind(first_characters(&thread, 50))
            .bind(first_characters(&description.desc, 100))
            .bind(self.owner.to_string())
            .bind(lease.map(lease_micros));
        let connection_id = conn.connection_id();
        let answer = tokio::select! {
            biased;
            answer = timeout(REPLY_TIMEOUT, insert.execute(&mut *conn)) => answer,
            () = self.wait_until_blocked_by_other_owner(&connection_id, wait.min(ROW_LOCK_CHECK_INTERVAL)) => {
                drop(conn);
                reply.send(Ok(None)).ok();
                return self.undo_insert(connection_id).await;
            }
        };
        match self.pool.classify_answer(conn, answer) {
            Ok(_) => {
                self.is_gone.store(false, Ordering::Relaxed);
                reply.send(Ok(Some(self))).ok();
            }
            Err(StatementFailure::Answered(error)) if error.is_unique_violation() || is_contention(&*error) => {
                reply.send(Ok(None)).ok();
            }
            Err(StatementFailure::Unanswered(error)) => {
                reply.send(Err(error)).ok();
                self.undo_insert(connection_id).await;
            }
            Err(failure) => {
                reply.send(Err(failure.into())).ok();
            }
        }
    }

    /// Completes once the insert has lasted longer than `wait` and the server has a row of this name by another owner.
    /// Without such a row the server is only slow.
    async fn wait_until_blocked_by_other_owner(&self, connection_id: &ConnectionId, wait: Duration) {
        let mut pause = wait + FIRST_ROW_LOCK_CHECK_DELAY;
        loop {
            sleep(pause).await;
            match connection_id.has_row_of_other_owner(&self.name, self.owner).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, name = self.name, "a slow insert"),
            }
            pause = ROW_LOCK_CHECK_INTERVAL;
        }
    }

    /// Undoes an unanswered insert. Its connection is killed first: otherwise the insert might be carried out after the
    /// deletion, and its row would stay for ever.
    async fn undo_insert(self, connection_id: ConnectionId) {
        let mut pause = FIRST_DELETE_PAUSE;
        while let Err(error) = connection_id.kill().await {
            tracing::debug!(%error, name = self.name, "ending an unanswered insert again");
            sleep(pause).await;
            pause = (pause * 2).min(MAX_DELETE_PAUSE);
        }
        self.delete_until_done().await;
    }

    /// Writes the hold count and extends the lease's end to `lease` from now (`None`: not at all), but never shortens it; `false`
    /// if that end has passed, or the row is gone or another owner's by now.
    pub(super) async fn renew(
        &self,
        holds: u32,
        lease: Option<Lease>,
        bound: Duration,
        is_by_keeper: bool,
    ) -> Result<bool, LockError> {
        let renewed = self.pool.run_renewal(is_by_keeper, bound, |conn| {
            sqlx::query(RENEW)
                .bind(holds)
                .bind(lease.map_or(0, lease_micros))
                .bind(self.name.clone())
                .bind(self.owner.to_string())
                .execute(conn)
                .boxed()
        });
        Ok(renewed.await?.rows_affected() > 0)
    }

    /// Deletes the row; [`LockError::Lost`] if it was gone already. After a refusal, or without an answer in time, it fails, and
    /// the row is deleted in the background once this value is dropped.
    pub(super) async fn release(&self) -> Result<(), LockError> {
        match timeout(REPLY_TIMEOUT, self.delete()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(LockError::lost(&self.name)),
            Ok(Err(refused)) => Err(refused),
            Err(_) => Err(no_answer_error()),
        }
    }

    /// Deletes the row, and retries even after a refusal, until somebody grants the right.
    async fn delete_until_done(&self) {
        while let Err(error) = self.delete().await {
            tracing::warn!(%error, name = self.name, "a row of tb_lock stays");
            sleep(MAX_DELETE_PAUSE).await;
        }
    }

    /// Deletes the row, and retries without end until the server has answered; `false` if it was gone already. An error is a
    /// refusal.
    async fn delete(&self) -> Result<bool, LockError> {
        let (mut pause, mut asked) = (FIRST_DELETE_PAUSE, false);
        loop {
            match self.delete_once(&mut asked).await {
                Err(error) if !matches!(error, LockError::Refused { .. }) => {
                    tracing::debug!(%error, name = self.name, "deleting from tb_lock again");
                }
                deleted => return deleted,
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_DELETE_PAUSE);
        }
    }

    /// Tries once to delete the row; returns whether there was one. After an attempt without an answer (`asked`, set here) a
    /// missing row counts as deleted by that attempt.
    async fn delete_once(&self, asked: &mut bool) -> Result<bool, LockError> {
        let deleted = self.pool.run_deletion(REPLY_TIMEOUT, |conn| {
            sqlx::query(DELETE).bind(self.name.clone()).bind(self.owner.to_string()).execute(conn).boxed()
        });
        let deleted = deleted.await;
        *asked |= matches!(deleted, Err(StatementFailure::Unanswered(_)));
        let deleted = deleted?.rows_affected() > 0;
        self.is_gone.store(true, Ordering::Relaxed);
        Ok(deleted || *asked)
    }
}

impl Drop for Row {
    /// Deletes the row in the background, until the server has answered, unless there is nothing to delete.
    fn drop(&mut self) {
        if self.is_gone.load(Ordering::Relaxed) {
            return;
        }
        let row = Self::without_deletion(&self.pool, &self.name, self.owner);
        self.pool.tasks().spawn(async move { row.delete_until_done().await });
    }
}

/// Returns the first `longest` characters; `None` for an empty text.
fn first_characters(text: &str, longest: usize) -> Option<String> {
    (!text.is_empty()).then(|| text.chars().take(longest).collect())
}

/// Returns the microseconds that the database adds to its clock: a millisecond more than the lease, because the database cuts
/// the time of day to whole milliseconds.
fn lease_micros(lease: Lease) -> u64 {
    lease.millis().saturating_add(1).saturating_mul(1000)
}
