//! A row of `tb_lock`: how it is inserted, kept and deleted. Both locks that are such a row stand on this.
//!
//! 1. Insert it. Where the name is there already another holds the lock: try again about every 50 ms, with no connection
//!    in between. A contender that takes a lease first deletes the row of the name whose lease has ended (the sweep of §4.3).
//! 2. Renew: put its end off, by name **and** owner, where it has not come yet. The clock is the database's.
//! 3. Delete it, by name **and** owner, until the server has answered.
//!
//! What it survives: a caller that goes away at any point (the insert runs to its end in a task of its own), a lost answer
//! (each insert's owner is a fresh one, so what it may have written can be deleted without harm to anybody).
//! **What breaks it**: names are compared as the column's collation does: those that differ only in case, or in spaces at
//! the end, are one lock.
//!
//! Next to read: `pool.rs`.

use super::pool::{Conn, MySqlPool, SERVER, failed, number};
use crate::{Holder, Lease, LockError, Owner};
use sqlx::{
    MySql,
    error::DatabaseError,
    mysql::{MySqlArguments, MySqlQueryResult},
    query::Query,
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

/// The course's pause between two attempts: ours are random around it, so that those who came together do not go on
/// polling together.
const POLL: Duration = Duration::from_millis(50);

/// An insert that is not answered by then is given up, and a release is reported as unanswered.
pub(super) const ANSWER: Duration = Duration::from_secs(3);

/// The pauses between attempts to delete a row while the server does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

const LONGEST_NAME: usize = 50;
const DEADLOCK: u16 = 1213;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const INTERRUPTED: u16 = 1317;

const TABLE: &str = include_str!("tb_lock.sql");
const INSERT: &str = "INSERT INTO tb_lock (lock_name, class_name, method_name, server_name, thread_name, create_time, \
                      `desc`, owner, holds, expires_at) \
                      VALUES (?, ?, ?, ?, ?, NOW(), ?, ?, 1, NOW(3) + INTERVAL ? MICROSECOND)";
/// A plain read locks nothing: those who wait do not stand in the holder's way.
const EXPIRED: &str = "SELECT COUNT(*) FROM tb_lock WHERE lock_name = ? AND expires_at <= NOW(3)";
const SWEEP: &str = "DELETE FROM tb_lock WHERE lock_name = ? AND expires_at <= NOW(3)";
const RENEW: &str = "UPDATE tb_lock SET holds = ?, expires_at = GREATEST(expires_at, NOW(3) + INTERVAL ? MICROSECOND) \
                     WHERE lock_name = ? AND owner = ? AND expires_at > NOW(3)";
/// How long the lease still runs, in microseconds; less than 0 where it has ended and has not been swept away.
const HOLDER: &str = "SELECT COALESCE(owner, ''), TIMESTAMPDIFF(MICROSECOND, NOW(3), expires_at) FROM tb_lock WHERE lock_name = ?";
const DELETE: &str = "DELETE FROM tb_lock WHERE lock_name = ? AND owner = ?";

/// The contender, as its row shows it to people (course §4). Nothing is decided by it; what is longer than its column is cut
/// off. `thread_name` is the thread that inserts.
///
/// ```
/// use oversell_lock::mysql::Caller;
///
/// let caller = Caller { class: "reports".into(), method: "nightly".into(), ..Caller::default() };
/// ```
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// `class_name`, of at most 100 characters: the module.
    pub class: String,
    /// `method_name`, of at most 50: the function.
    pub method: String,
    /// `server_name`, of at most 50: the instance.
    pub server: String,
    /// `desc`, of at most 100: what for.
    pub desc: String,
}

/// A contender for a row of `tb_lock`.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    pub(super) pool: MySqlPool,
    pub(super) name: String,
    pub(super) caller: Caller,
}

/// A row that is, or may be, in the table. Dropping it deletes it in the background.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) pool: MySqlPool,
    pub(super) name: String,
    owner: Owner,
    gone: AtomicBool,
}

impl MySqlPool {
    /// Makes the table `tb_lock` where it is not there yet; the account needs the right to. One that is there is left as it
    /// is.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may be made or not; it may be called again.
    pub async fn create_table(&self) -> Result<(), LockError> {
        let mut conn = self.conn(ANSWER).await?;
        sqlx::query(TABLE)
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
        conn.done();
        Ok(())
    }

    /// The connection goes back, where the server has answered on it.
    fn finish<T>(&self, conn: Conn, answer: &Result<T, sqlx::Error>) {
        match answer {
            Ok(_) | Err(sqlx::Error::Database(_)) => conn.done(),
            Err(_) => self.forget_idle(),
        }
    }
}

impl Contender {
    pub(super) fn new(pool: &MySqlPool, name: &str) -> Self {
        Self {
            pool: pool.clone(),
            name: name.to_owned(),
            caller: Caller::default(),
        }
    }

    pub(super) fn taken(&self, waited: Duration) -> LockError {
        LockError::taken(&self.name, waited)
    }

    /// Whose row is there.
    pub(super) async fn holder(&self) -> Result<Option<Holder>, LockError> {
        let mut conn = match self.pool.conn(ANSWER).await {
            Err(LockError::Taken { .. }) => return Err(no_connection()),
            conn => conn?,
        };
        let row = sqlx::query_as::<_, (String, Option<i64>)>(HOLDER)
            .bind(&self.name)
            .fetch_optional(&mut *conn)
            .await;
        let row = row.map_err(failed)?;
        conn.done();
        let left = |micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default());
        let holder = row.map(|(id, micros)| Holder {
            id,
            remaining: micros.map(left),
        });
        Ok(holder.filter(|holder| holder.remaining != Some(Duration::ZERO)))
    }

    /// Inserts the row, waiting at most `wait`; gives it and when its lease began.
    pub(super) async fn row(
        &self,
        lease: Option<Lease>,
        wait: Duration,
    ) -> Result<(Row, Instant), LockError> {
        if !(1..=LONGEST_NAME).contains(&self.name.chars().count()) {
            return Err(LockError::invalid(
                &self.name,
                "a name has 1 to 50 characters",
            ));
        }
        let start = Instant::now();
        let left = || wait.saturating_sub(start.elapsed());
        let mut was_taken = false;
        loop {
            let conn = match self.pool.conn(left()).await {
                Err(LockError::Taken { .. }) if was_taken => return Err(self.taken(wait)),
                // Whether the lock is free is unknown.
                Err(LockError::Taken { .. }) => return Err(no_connection()),
                conn => conn?,
            };
            let leased = Instant::now();
            if let Some(row) = self.insert(conn, lease).await? {
                return Ok((row, leased));
            }
            was_taken = true;
            if lease.is_some() && self.sweep().await? {
                continue;
            }
            if left().is_zero() {
                return Err(self.taken(wait));
            }
            sleep(POLL.mul_f64(0.5 + fastrand::f64()).min(left())).await;
        }
    }

    /// Tries once; `None` where another's row is there.
    ///
    /// The statement runs in a task of its own, to its end: a caller that is dropped meanwhile drops the reply, and
    /// with it the row.
    async fn insert(&self, conn: Conn, lease: Option<Lease>) -> Result<Option<Row>, LockError> {
        let row = Row::gone(&self.pool, &self.name, self.pool.owner());
        let (reply, answer) = oneshot::channel();
        self.pool
            .tasks()
            .spawn(row.insert(conn, self.caller.clone(), lease, reply));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Deletes the row of this name if its lease has ended; whether there was one.
    async fn sweep(&self) -> Result<bool, LockError> {
        let mut conn = self.pool.conn(ANSWER).await?;
        let swept = self.sweep_on(&mut conn).await;
        self.pool.finish(conn, &swept);
        match swept {
            Err(sqlx::Error::Database(error)) if is_contention(&*error) => Ok(false),
            swept => swept.map_err(failed),
        }
    }

    async fn sweep_on(&self, conn: &mut Conn) -> Result<bool, sqlx::Error> {
        let expired: i64 = sqlx::query_scalar(EXPIRED)
            .bind(&self.name)
            .fetch_one(&mut **conn)
            .await?;
        if expired == 0 {
            return Ok(false);
        }
        let sweep = sqlx::query(SWEEP).bind(&self.name);
        let swept = conn
            .session()
            .bounded(ANSWER, sweep.execute(&mut **conn))
            .await?;
        Ok(swept.rows_affected() > 0)
    }
}

impl Row {
    /// A row that is not there, or is deleted by someone else: nothing is done when it is dropped.
    fn gone(pool: &MySqlPool, name: &str, owner: Owner) -> Self {
        Self {
            pool: pool.clone(),
            name: name.to_owned(),
            owner,
            gone: AtomicBool::new(true),
        }
    }

    async fn insert(
        self,
        mut conn: Conn,
        caller: Caller,
        lease: Option<Lease>,
        reply: oneshot::Sender<Result<Option<Self>, LockError>>,
    ) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let insert = sqlx::query(INSERT)
            .bind(&self.name)
            .bind(cut(&caller.class, 100))
            .bind(cut(&caller.method, 50))
            .bind(cut(&caller.server, 50))
            .bind(cut(&thread, 50))
            .bind(cut(&caller.desc, 100))
            .bind(self.owner.to_string())
            .bind(lease.map(micros));
        match timeout(ANSWER, insert.execute(&mut *conn)).await {
            Ok(Ok(_)) => {
                conn.done();
                self.gone.store(false, Ordering::Relaxed);
                reply.send(Ok(Some(self))).ok();
            }
            Ok(Err(sqlx::Error::Database(error))) => {
                conn.done();
                let taken = error.is_unique_violation() || is_contention(&*error);
                let answer = if taken {
                    Ok(None)
                } else {
                    Err(failed(sqlx::Error::Database(error)))
                };
                reply.send(answer).ok();
            }
            Ok(Err(error)) => {
                reply.send(Err(failed(error))).ok();
                self.never_mind(conn).await;
            }
            Err(_) => {
                reply.send(Err(unanswered())).ok();
                self.never_mind(conn).await;
            }
        }
    }

    /// Undoes an insert that was not answered. The statement is ended first: it might otherwise be carried out
    /// after the deletion, and the row stay for ever.
    async fn never_mind(self, conn: Conn) {
        self.pool.forget_idle();
        if let Some(session) = conn.abandon() {
            let mut pause = FIRST_PAUSE;
            while let Err(error) = session.end().await {
                tracing::debug!(%error, name = self.name, "ending an unanswered insert again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        self.delete().await;
    }

    /// Writes how often its owner holds it, and puts its end off to `lease` from now, but never forward; `false` where its
    /// end has come, or it is another's by now.
    pub(super) async fn renew(&self, holds: u32, lease: Option<Lease>) -> Result<bool, LockError> {
        let mut conn = self.pool.conn(ANSWER).await?;
        let (lease, owner) = (lease.map_or(0, micros), self.owner.to_string());
        let renew = || {
            sqlx::query(RENEW)
                .bind(holds)
                .bind(lease)
                .bind(&self.name)
                .bind(&owner)
        };
        let renewed = execute(&mut conn, renew).await;
        self.pool.finish(conn, &renewed);
        Ok(renewed.map_err(failed)?.rows_affected() > 0)
    }

    /// Deletes it, and says how that went as far as the server answers in time; the rest goes on in the background.
    pub(super) async fn release(&self) -> Result<(), LockError> {
        match timeout(ANSWER, self.delete()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(LockError::lost(&self.name)),
            Err(_) => Err(unanswered()),
        }
    }

    /// Deletes it, however often that must be asked; `false` where it was gone already.
    async fn delete(&self) -> bool {
        let mut pause = FIRST_PAUSE;
        let mut asked_before = false;
        loop {
            match self.delete_once(&mut asked_before).await {
                Ok(deleted) => {
                    self.gone.store(true, Ordering::Relaxed);
                    return deleted;
                }
                Err(error) => {
                    tracing::debug!(%error, name = self.name, "deleting from tb_lock again")
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn delete_once(&self, asked_before: &mut bool) -> Result<bool, LockError> {
        let mut conn = self.pool.conn(ANSWER).await?;
        let owner = self.owner.to_string();
        let deleted = execute(&mut conn, || {
            sqlx::query(DELETE).bind(&self.name).bind(&owner)
        })
        .await;
        self.pool.finish(conn, &deleted);
        match deleted {
            Ok(deleted) => Ok(deleted.rows_affected() > 0 || *asked_before),
            Err(error) => {
                let failure = failed(error);
                // What was refused has deleted nothing.
                *asked_before |= !matches!(failure, LockError::Refused { .. });
                Err(failure)
            }
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        if self.gone.load(Ordering::Relaxed) || Handle::try_current().is_err() {
            return;
        }
        let row = Self::gone(&self.pool, &self.name, self.owner);
        self.pool.tasks().spawn(async move { row.delete().await });
    }
}

fn cut(text: &str, longest: usize) -> Option<String> {
    (!text.is_empty()).then(|| text.chars().take(longest).collect())
}

fn micros(lease: Lease) -> u64 {
    lease.millis().saturating_mul(1000)
}

/// Executes `statement`, and again where the server ended it because of others: it is a transaction by itself, so that
/// one that was ended has changed nothing.
async fn execute<'q, F>(conn: &mut Conn, statement: F) -> Result<MySqlQueryResult, sqlx::Error>
where
    F: Fn() -> Query<'q, MySql, MySqlArguments>,
{
    loop {
        match statement().execute(&mut **conn).await {
            Err(sqlx::Error::Database(error)) if is_contention(&*error) => {}
            answer => return answer,
        }
    }
}

/// Whether the server ended the statement because of others, so that it can be repeated at once.
fn is_contention(error: &dyn DatabaseError) -> bool {
    matches!(
        number(error),
        Some(DEADLOCK | LOCK_WAIT_TIMEOUT | INTERRUPTED)
    )
}

fn no_connection() -> LockError {
    LockError::unavailable(
        SERVER,
        "all connections of the pool were in use for all of the wait",
    )
}

fn unanswered() -> LockError {
    LockError::unavailable(
        SERVER,
        "no answer in time; what was asked is undone or goes on in the background",
    )
}
