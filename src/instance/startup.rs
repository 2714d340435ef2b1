//! Prepares a server that came up, perhaps an empty one: makes the tables in MySQL, puts the stock into Redis.

use crate::{ctx::Ctx, section::mysql::is_contended, stock_admin};
use oversell_lab::migrations::{migrator, tables_in_the_way};
use oversell_lock::mysql::Conn;
use parking_lot::Mutex;
use sqlx::{Executor, migrate::Migration};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The migrations that were applied to their ends.
const APPLIED_MIGRATIONS: &str = "SELECT version, checksum FROM _sqlx_migrations WHERE success";

/// Creates the row that says which instance makes the tables if several start at once, and until when. It is a row, since each
/// node of a Galera cluster has a `GET_LOCK` of its own, while of two writes of one row on two nodes one is refused. (sqlx
/// takes a `GET_LOCK` too, with an endless wait, which MariaDB refuses: it answers NULL and locks nothing.)
const CREATE_MIGRATION_TURN: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS maker (id INT NOT NULL PRIMARY KEY, owner VARCHAR(64) NOT NULL, \
     expires_at DATETIME(6) NOT NULL) ENGINE = InnoDB",
    "INSERT IGNORE INTO maker (id, owner, expires_at) VALUES (1, '', '2000-01-01')",
];
/// Makes this instance the maker for longer than `MIGRATION_TIMEOUT`; changes no row while another one is.
const TAKE_MIGRATION_TURN: &str = "UPDATE maker SET owner = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL 45 SECOND \
                    WHERE id = 1 AND expires_at < UTC_TIMESTAMP(6)";
/// Ends this instance's turn as the maker.
const END_MIGRATION_TURN: &str = "UPDATE maker SET expires_at = '2000-01-01' WHERE id = 1 AND owner = ?";
/// How often an instance asks whether it may make the tables: short beside the time that another one takes.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Time limit of making all tables.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(40);

/// The startup steps that are done since MySQL came up, and the tables of others that block them.
#[derive(Debug, Default)]
pub(super) struct Progress {
    has_tables: AtomicBool,
    seeded: AtomicBool,
    /// Tables of another program in the place of ours.
    tables_in_the_way: Mutex<Vec<String>>,
}

impl Progress {
    pub(super) fn has_tables(&self) -> bool {
        self.has_tables.load(Ordering::Relaxed)
    }

    /// The reason why the tables cannot be made, if a person must remove it.
    pub(super) fn obstacle(&self) -> Option<String> {
        let tables = self.tables_in_the_way.lock().join(", ");
        (!tables.is_empty())
            .then(|| format!("{tables}: made by another program; rename it, or set mysql.url to another database"))
    }

    /// Runs the steps that are not done yet: the tables, then the stock. The next call tries a failed step again.
    pub(super) async fn prepare(&self, ctx: &Ctx) {
        let migrate = async { tokio::time::timeout(MIGRATION_TIMEOUT, self.migrate(ctx)).await.map_err(|e| e.to_string())? };
        let seed = async { stock_admin::seed(ctx).await.map_err(|e| e.to_string()) };
        run_unless_done(&self.has_tables, migrate).await;
        if self.has_tables() {
            run_unless_done(&self.seeded, seed).await;
        }
    }

    /// Marks all steps as not done, because the next server may be an empty one.
    pub(super) fn mark_all_steps_undone(&self) {
        self.has_tables.store(false, Ordering::Relaxed);
        self.seeded.store(false, Ordering::Relaxed);
        self.tables_in_the_way.lock().clear();
    }

    /// Waits until no other instance makes the tables, and makes them; does nothing if they are made. The caller bounds the wait.
    async fn migrate(&self, ctx: &Ctx) -> Result<(), String> {
        let mut conn = ctx.admin_pool.conn(MIGRATION_TIMEOUT).await.map_err(|e| e.to_string())?;
        if are_tables_made(&mut conn).await {
            conn.done();
            return Ok(());
        }
        let owner = uuid::Uuid::new_v4().to_string();
        become_maker(&mut conn, &owner).await.map_err(|e| e.to_string())?;
        let made = self.make_tables(&mut conn).await;
        let given_back = sqlx::query(END_MIGRATION_TURN).bind(&owner).execute(&mut *conn);
        given_back.await.map_err(|e| e.to_string())?;
        conn.done();
        made
    }

    /// Makes the tables, unless another program's tables have their names: a migration that fails half way must be mended by
    /// hand.
    async fn make_tables(&self, conn: &mut Conn) -> Result<(), String> {
        let tables_in_the_way = tables_in_the_way(conn).await.map_err(|e| e.to_string())?;
        *self.tables_in_the_way.lock() = tables_in_the_way;
        if let Some(obstacle) = self.obstacle() {
            return Err(obstacle);
        }
        migrator().run_direct(&mut **conn).await.map_err(|error| {
            tracing::error!(%error, "the tables cannot be made");
            error.to_string()
        })
    }
}

/// Runs a step unless it is done; a failed step is tried again later.
async fn run_unless_done(done: &AtomicBool, step: impl Future<Output = Result<(), String>>) {
    if done.load(Ordering::Relaxed) {
        return;
    }
    match step.await {
        Ok(()) => done.store(true, Ordering::Relaxed),
        Err(error) => tracing::debug!(%error, "a startup step failed and is tried again"),
    }
}

/// Whether exactly our migrations are applied, so that no instance must wait for another; false if they cannot be read.
async fn are_tables_made(conn: &mut Conn) -> bool {
    let migrator = migrator();
    let made = sqlx::query_as(APPLIED_MIGRATIONS).fetch_all(&mut **conn).await;
    made.is_ok_and(|made: Vec<(i64, Vec<u8>)>| {
        let is_made = |one: &Migration| {
            let mut made = made.iter();
            made.any(|(version, sum)| *version == one.version && **sum == *one.checksum)
        };
        made.len() == migrator.iter().count() && migrator.iter().all(is_made)
    })
}

/// Waits, without a limit, until `owner` alone may make the tables; creates the row of the turn first.
async fn become_maker(conn: &mut Conn, owner: &str) -> Result<(), sqlx::Error> {
    for statement in CREATE_MIGRATION_TURN {
        unless_contended(conn.execute(statement).await)?;
    }
    loop {
        let taken = sqlx::query(TAKE_MIGRATION_TURN).bind(owner).execute(&mut **conn).await;
        if unless_contended(taken)?.is_some_and(|done| done.rows_affected() == 1) {
            return Ok(());
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// The result of a statement; `None` if it was refused because another instance writes the same row.
fn unless_contended<T>(done: Result<T, sqlx::Error>) -> Result<Option<T>, sqlx::Error> {
    match done {
        Err(error) if is_contended(&error) => Ok(None),
        done => done.map(Some),
    }
}
