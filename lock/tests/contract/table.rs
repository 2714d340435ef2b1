//! `TableLock` under the contract, and what only it promises; what a family of locks in `tb_lock` is.

use super::{
    Verdict,
    clauses::SOON,
    family::{Family, Process, name, until},
    table_pool,
};
use oversell_lock::{
    Lock, LockError,
    mysql::{MySqlOptions, MySqlPool, TableLock},
};
use sqlx::{Connection, MySqlConnection};
use std::{marker::PhantomData, sync::Arc};

/// A kind of lock that is a row of `tb_lock`.
pub(crate) trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
    type Lock: Lock + 'static;

    fn of(contender: &Contender, name: &str) -> Self::Lock;
}

/// Without a lease.
pub(crate) struct Plain;

impl Kind for Plain {
    const NAME: &'static str = "table";
    type Lock = TableLock;

    fn of(contender: &Contender, name: &str) -> TableLock {
        contender.pool.table_lock(name)
    }
}

/// One kind on one server.
pub(crate) struct Table<K = Plain> {
    url: String,
    kind: PhantomData<K>,
}

/// A pool, whose owners are named after its process.
#[derive(Clone)]
pub(crate) struct Contender {
    pub(crate) pool: MySqlPool,
}

/// The same, and the kind of its locks.
pub(crate) struct Holder<K>(Contender, PhantomData<K>);

impl<K> std::ops::Deref for Holder<K> {
    type Target = Contender;

    fn deref(&self) -> &Contender {
        &self.0
    }
}

impl<K: Kind> Table<K> {
    pub(crate) fn at(url: String) -> Self {
        Self {
            url,
            kind: PhantomData,
        }
    }

    /// A process with so many connections, which reaches the server at `address`.
    pub(crate) async fn process_with(&self, address: &str, connections: usize) -> Holder<K> {
        let url = self.url.replace(&self.server(), address);
        let pool =
            MySqlPool::new(MySqlOptions::new(&url).connections(connections)).expect("an address");
        Holder(Contender { pool }, PhantomData)
    }

    /// Deletes the row, whoever's it is.
    pub(crate) async fn delete(&self, name: &str) {
        let delete = "DELETE FROM tb_lock WHERE lock_name = ?";
        sqlx::query(delete)
            .bind(name)
            .execute(&mut self.outsider().await)
            .await
            .expect("deleted");
    }

    /// A connection that looks at the server from outside.
    pub(crate) async fn outsider(&self) -> MySqlConnection {
        MySqlConnection::connect(&self.url)
            .await
            .expect("mysql is there")
    }
}

impl<K: Kind> Family for Table<K> {
    const NAME: &'static str = K::NAME;
    const QUEUES: bool = false;
    type Process = Holder<K>;

    fn server(&self) -> String {
        let after_user = self
            .url
            .rsplit_once('@')
            .expect("mysql://user@host:port/database")
            .1;
        after_user.split('/').next().expect("a host").to_owned()
    }

    async fn process_at(&self, address: &str) -> Holder<K> {
        self.process_with(address, 4).await
    }

    async fn left(&self, name: &str) -> Vec<String> {
        let owners = "SELECT owner FROM tb_lock WHERE lock_name = ?";
        sqlx::query_scalar(owners)
            .bind(name)
            .fetch_all(&mut self.outsider().await)
            .await
            .expect("a list")
    }

    async fn take_away(&self, _: &Holder<K>, name: &str) {
        self.delete(name).await;
    }
}

impl<K: Kind> Process for Holder<K> {
    type Lock = K::Lock;

    fn lock(&self, name: &str) -> K::Lock {
        K::of(&self.0, name)
    }

    async fn close(&self) {
        self.0.pool.close().await;
    }
}

pub(crate) async fn a_name_that_is_too_long_is_refused_and_not_cut_off(
    table: Arc<Table>,
) -> Verdict {
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

/// Another transaction holds the row, so the insert waits for it in the server; the contender goes away meanwhile. The
/// server must end it before the transaction does: what waits on would make a row that nobody deletes.
pub(crate) async fn an_insert_that_is_not_answered_leaves_no_row(table: Arc<Table>) -> Verdict {
    let name = name();
    let process = table.process_with(&table.server(), 1).await;
    let mut only = process.pool.conn(SOON).await.map_err(|e| e.to_string())?;
    let inserts_on = table_pool::id(&mut only).await?;
    only.done();
    let mut human = table.outsider().await;
    let mut transaction = human.begin().await.map_err(|e| e.to_string())?;
    let insert = "INSERT INTO tb_lock (lock_name) VALUES (?)";
    sqlx::query(insert)
        .bind(&name)
        .execute(&mut *transaction)
        .await
        .map_err(|e| e.to_string())?;
    match process.lock(&name).acquire(SOON).await {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("while a transaction is open: {other:?}")),
    }
    table_pool::gone(&table, inserts_on).await?;
    transaction.rollback().await.map_err(|e| e.to_string())?;
    process.close().await;
    until("no row is left", || async {
        table.left(&name).await.is_empty()
    })
    .await
}
