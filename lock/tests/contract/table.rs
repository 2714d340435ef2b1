//! `TableLock` under the contract, and what only it promises.

use super::{
    Verdict,
    clauses::SOON,
    family::{Family, Process, name, until},
};
use oversell_lock::{
    Lock, LockError,
    mysql::{TableLock, pool::MySqlPool},
};
use sqlx::{Connection, MySqlConnection};
use std::sync::Arc;
use tokio::sync::OnceCell;

pub(crate) struct Table {
    url: String,
    migrated: OnceCell<()>,
}

/// A pool, and the process that owners are named after.
pub(crate) struct Contender {
    pool: MySqlPool,
    process: oversell_lock::Process,
}

impl Table {
    pub(crate) fn at(url: String) -> Self {
        Self { url, migrated: OnceCell::new() }
    }

    /// A connection that looks at the server from outside.
    async fn outsider(&self) -> MySqlConnection {
        let migrate = || async {
            let mut connection = MySqlConnection::connect(&self.url).await.expect("mysql is there");
            sqlx::migrate!("../migrations").run_direct(&mut connection).await.expect("the tables are made");
        };
        self.migrated.get_or_init(migrate).await;
        MySqlConnection::connect(&self.url).await.expect("mysql is there")
    }
}

impl Family for Table {
    const NAME: &'static str = "table";
    const QUEUES: bool = false;
    type Process = Contender;

    fn server(&self) -> String {
        let after_user = self.url.rsplit_once('@').expect("mysql://user@host:port/database").1;
        after_user.split('/').next().expect("a host").to_owned()
    }

    async fn process_at(&self, address: &str) -> Contender {
        self.outsider().await.close().await.expect("closed");
        let url = self.url.replace(&self.server(), address);
        Contender { pool: MySqlPool::new(&url, 4).expect("an address"), process: oversell_lock::Process::new() }
    }

    async fn left(&self, name: &str) -> Vec<String> {
        let owners = "SELECT owner FROM tb_lock WHERE lock_name = ?";
        sqlx::query_scalar(owners).bind(name).fetch_all(&mut self.outsider().await).await.expect("a list")
    }

    async fn take_away(&self, _: &Contender, name: &str) {
        let delete = "DELETE FROM tb_lock WHERE lock_name = ?";
        sqlx::query(delete).bind(name).execute(&mut self.outsider().await).await.expect("deleted");
    }
}

impl Process for Contender {
    type Lock = TableLock;

    fn lock(&self, name: &str) -> TableLock {
        TableLock::new(&self.pool, name, &self.process)
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

pub(crate) async fn a_name_that_is_too_long_is_refused_and_not_cut_off(table: Arc<Table>) -> Verdict {
    let process = table.process().await;
    match process.lock(&"锁".repeat(51)).acquire(SOON).await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("51 characters: {other:?}")),
    }
    match process.lock(&"锁".repeat(50)).acquire(SOON).await {
        Ok(guard) => guard.release().await.map_err(|e| e.to_string()),
        Err(error) => Err(format!("50 characters: {error}")),
    }
}

/// Another transaction holds the row, so the insert waits for it in the server; the contender goes away meanwhile.
pub(crate) async fn an_insert_that_is_not_answered_leaves_no_row(table: Arc<Table>) -> Verdict {
    let name = name();
    let process = table.process().await;
    let mut human = table.outsider().await;
    let mut transaction = human.begin().await.map_err(|e| e.to_string())?;
    let insert = "INSERT INTO tb_lock (lock_name) VALUES (?)";
    sqlx::query(insert).bind(&name).execute(&mut *transaction).await.map_err(|e| e.to_string())?;
    match process.lock(&name).acquire(SOON).await {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("while a transaction is open: {other:?}")),
    }
    transaction.rollback().await.map_err(|e| e.to_string())?;
    process.close().await;
    until("no row is left", || async { table.left(&name).await.is_empty() }).await
}
