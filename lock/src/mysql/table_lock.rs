//! A row as a lock: the unique key on `lock_name` lets one insert succeed (course §4).
//!
//! 1. Insert a row with the lock's name. Where it is there already another holds the lock: try again about every
//!    50 ms.
//! 2. Release: delete the row, by name **and** owner, until the server has answered.
//!
//! What it survives: any number of processes, a holder that panics or is dropped, a lost answer (each attempt's owner
//! is a fresh one, so what it may have inserted can be deleted without harm to anybody). **What breaks it**: a holder
//! that dies: there is no lease, its row stays, and nobody gets in until somebody deletes it (§4.3). Names are compared
//! as the column's collation does: those that differ only in case, or in spaces at the end, are one lock.
//!
//! Of a process's contenders for one name, at most 64 poll; the others wait for their turn in the process. A thousand
//! polling 20 times a second would leave the server, and the pool, no time for the one that holds the lock.
//!
//! Next to read: `pool.rs`.

use super::pool::{Conn, MySqlPool, SERVER, unavailable};
use crate::{Guard, Keeper, Lock, LockError, Owner, Process};
use sqlx::{error::DatabaseError, mysql::MySqlDatabaseError};
use std::time::Duration;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

/// How many of a process's contenders for one name poll.
pub(super) const POLLERS: usize = 64;

/// The course's pause between two attempts: ours are random around it, so that those who came together do not go on
/// polling together.
const POLL: Duration = Duration::from_millis(50);

/// An insert that is not answered by then is given up, and a release is reported as unanswered.
const ANSWER: Duration = Duration::from_secs(3);

/// The pauses between attempts to delete a row while the server does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

const LONGEST_NAME: usize = 50;
const DEADLOCK: u16 = 1213;
const LOCK_WAIT_TIMEOUT: u16 = 1205;

const INSERT: &str = "INSERT INTO tb_lock (lock_name, server_name, thread_name, owner) VALUES (?, ?, ?, ?)";
const DELETE: &str = "DELETE FROM tb_lock WHERE lock_name = ? AND owner = ?";

/// A contender for a row of `tb_lock`. The table is in `migrations/0002_lock.sql`.
#[derive(Debug, Clone)]
pub struct TableLock {
    pool: MySqlPool,
    name: String,
    process: Process,
}

/// A row that is, or may be, in the table. Dropping it deletes it in the background.
#[derive(Debug)]
struct Row {
    pool: MySqlPool,
    name: String,
    owner: Owner,
    gone: bool,
}

impl TableLock {
    /// A contender for the lock `name`, of at most 50 characters.
    #[must_use]
    pub fn new(pool: &MySqlPool, name: &str, process: &Process) -> Self {
        Self { pool: pool.clone(), name: name.to_owned(), process: process.clone() }
    }

    /// Tries once; `None` where another's row is there.
    ///
    /// The statement runs in a task of its own, to its end: a caller that is dropped meanwhile drops the reply, and
    /// with it the row.
    async fn insert(&self, conn: Conn) -> Result<Option<Row>, LockError> {
        let row = Row { pool: self.pool.clone(), name: self.name.clone(), owner: self.process.owner(), gone: true };
        let (reply, answer) = oneshot::channel();
        self.pool.tasks().spawn(row.insert(conn, reply));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    fn taken(&self, waited: Duration) -> LockError {
        LockError::Taken { name: self.name.clone(), waited }
    }
}

impl Lock for TableLock {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        if self.name.chars().count() > LONGEST_NAME {
            return Err(LockError::Invalid { name: self.name.clone(), rule: "at most 50 characters" });
        }
        let start = Instant::now();
        let left = || wait.saturating_sub(start.elapsed());
        let turn = self.pool.pollers().take(&self.name);
        let place = timeout(wait, turn).await.map_err(|_| self.taken(wait))?;
        loop {
            let conn = self.pool.conn(left()).await?;
            if let Some(row) = self.insert(conn).await? {
                drop(place);
                let (guard, keeper) = Guard::new(&self.name, None);
                self.pool.tasks().spawn(keep(row, keeper));
                return Ok(guard);
            }
            if left().is_zero() {
                return Err(self.taken(wait));
            }
            sleep(POLL.mul_f64(0.5 + fastrand::f64()).min(left())).await;
        }
    }
}

/// Keeps the row until its holder gives the lock back. Nothing can take it away meanwhile but a human.
async fn keep(mut row: Row, mut keeper: Keeper) {
    let release = keeper.asked_to_release().await;
    let released = match timeout(ANSWER, row.delete()).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(LockError::Lost { name: row.name.clone() }),
        Err(_) => Err(unanswered()),
    };
    drop(row);
    release.done(released);
}

impl Row {
    async fn insert(mut self, mut conn: Conn, reply: oneshot::Sender<Result<Option<Self>, LockError>>) {
        let thread = std::thread::current().name().map(|name| name.chars().take(50).collect::<String>());
        let insert = sqlx::query(INSERT)
            .bind(&self.name)
            .bind(format!("pid {}", std::process::id()))
            .bind(thread)
            .bind(self.owner.to_string());
        match timeout(ANSWER, insert.execute(&mut *conn)).await {
            Ok(Ok(_)) => {
                conn.done();
                self.gone = false;
                reply.send(Ok(Some(self))).ok();
            }
            Ok(Err(sqlx::Error::Database(error))) => {
                conn.done();
                let taken = error.is_unique_violation() || is_contention(&*error);
                let answer = if taken { Ok(None) } else { Err(unavailable(&sqlx::Error::Database(error))) };
                reply.send(answer).ok();
            }
            Ok(Err(error)) => {
                reply.send(Err(unavailable(&error))).ok();
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
    async fn never_mind(mut self, conn: Conn) {
        self.pool.forget_idle();
        if let Some(abandoned) = conn.abandon() {
            let mut pause = FIRST_PAUSE;
            while let Err(error) = abandoned.end().await {
                tracing::debug!(%error, name = self.name, "ending an unanswered insert again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        self.delete().await;
    }

    /// Deletes it, however often that must be asked; `false` where it was gone already.
    async fn delete(&mut self) -> bool {
        let mut pause = FIRST_PAUSE;
        let mut asked_before = false;
        loop {
            match self.delete_once(&mut asked_before).await {
                Ok(deleted) => {
                    self.gone = true;
                    return deleted;
                }
                Err(error) => tracing::debug!(%error, name = self.name, "deleting from tb_lock again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn delete_once(&self, asked_before: &mut bool) -> Result<bool, LockError> {
        let mut conn = self.pool.conn(ANSWER).await?;
        loop {
            let delete = sqlx::query(DELETE).bind(&self.name).bind(self.owner.to_string());
            match delete.execute(&mut *conn).await {
                Ok(result) => {
                    conn.done();
                    return Ok(result.rows_affected() > 0 || *asked_before);
                }
                Err(sqlx::Error::Database(error)) if is_contention(&*error) => {}
                Err(error) => {
                    *asked_before = true;
                    self.pool.forget_idle();
                    return Err(unavailable(&error));
                }
            }
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        if self.gone || Handle::try_current().is_err() {
            return;
        }
        let mut row = Self { pool: self.pool.clone(), name: self.name.clone(), owner: self.owner, gone: true };
        self.pool.tasks().spawn(async move { row.delete().await });
    }
}

/// Whether the server ended the statement because of others, so that it can be repeated at once.
fn is_contention(error: &dyn DatabaseError) -> bool {
    let number = error.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
    matches!(number, Some(DEADLOCK | LOCK_WAIT_TIMEOUT))
}

fn unanswered() -> LockError {
    LockError::Unavailable {
        server: SERVER,
        reason: "no answer in time; what was asked is undone or goes on in the background".into(),
    }
}
