//! One MySQL, its two locks, and what the one without a lease promises alone.

pub(crate) mod answers;
pub(crate) mod bounds;
pub(crate) mod lease;
pub(crate) mod pool;
pub(crate) mod tls;

use crate::{
    family::{Capability::*, asked, operator},
    support::*,
};
use oversell_lock::mysql::{MySqlOptions, TablePool};
use sqlx::{Connection, MySqlConnection};

/// A renewed lease: a busy machine keeps it, and a test can wait for its loss.
pub(crate) const LEASE: Lease = Lease::Watchdog(Duration::from_secs(9));

static KINDS: &[Kind<Table>] = &[
    Kind::new("table", &[Contract, OneServer, Shown], |pool: &TablePool, name, _| pool.table_lock(name).boxed())
        .shows(|pool: &TablePool, name| operator!(pool.table_lock(name))),
    Kind::new(
        "table_lease",
        &[Contract, OneServer, Losable, Leased, Reentrant, Layered, Shown],
        |pool: &TablePool, name, ask| asked!(pool.table_lease_lock(name).lease(LEASE), ask).boxed(),
    )
    .shows(|pool: &TablePool, name| operator!(pool.table_lease_lock(name))),
];

pub(crate) struct Table {
    pub(crate) url: String,
}

impl Table {
    pub(crate) fn at(url: String) -> Self {
        Self { url }
    }

    /// A process with this many connections, at `address`.
    pub(crate) fn pool(&self, address: &str, connections: usize) -> TablePool {
        let options = MySqlOptions::new(self.url_at(address)).connections(connections);
        TablePool::new(options).expect("an address")
    }

    /// Its URL with another address.
    pub(crate) fn url_at(&self, address: &str) -> String {
        self.url.replace(&self.address(), address)
    }

    /// Deletes the row, whatever its owner.
    pub(crate) async fn delete(&self, name: &str) {
        let delete = sqlx::query("DELETE FROM tb_lock WHERE lock_name = ?").bind(name);
        let deleted = delete.execute(&mut self.outsider().await).await;
        deleted.expect("deleted");
    }

    pub(crate) async fn run(&self, statements: &[&str]) -> Result {
        let mut outsider = self.outsider().await;
        for statement in statements {
            sqlx::raw_sql(statement).execute(&mut outsider).await?;
        }
        Ok(())
    }

    /// The test's own connection.
    pub(crate) async fn outsider(&self) -> MySqlConnection {
        let connection = MySqlConnection::connect(&self.url).await;
        connection.expect("mysql is there")
    }
}

impl Server for Table {
    type Client = TablePool;
    const BRIEF: Duration = Duration::from_millis(400);

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }

    fn address(&self) -> String {
        let (_, after_user) = self.url.rsplit_once('@').expect("a user");
        after_user.split('/').next().expect("a host").to_owned()
    }

    async fn client_at(&self, address: &str) -> TablePool {
        self.pool(address, 4)
    }

    fn owner(pool: &TablePool) -> Owner {
        pool.owner()
    }

    async fn left(&self, name: &str) -> Vec<String> {
        sqlx::query_scalar("SELECT owner FROM tb_lock WHERE lock_name = ?")
            .bind(name)
            .fetch_all(&mut self.outsider().await)
            .await
            .expect("a list")
    }

    async fn take_away(&self, _: &TablePool, name: &str) {
        self.delete(name).await;
    }
}

#[apply(test!)]
async fn a_name_that_is_too_long_is_refused_and_not_cut_off(table: &Table) -> Result {
    let pool = table.client().await;
    let long = pool.table_lock(&"锁".repeat(51)).acquire(SOON).await;
    ensure_invalid("51 characters", long)?;
    pass(&pool.table_lock(&"锁".repeat(50))).await
}

/// A database without the table: the error says how to make it.
#[apply(test!)]
async fn a_missing_table_is_said_with_its_remedy(table: &Table) -> Result {
    let (server, _) = table.url.rsplit_once('/').context("a database")?;
    let empty = format!("oversell_empty_{}", std::process::id());
    table.run(&[&format!("CREATE DATABASE {empty}")]).await?;
    let pool = TablePool::connect(format!("{server}/{empty}")).await?;
    let missing = pool.table_lock(&name()).try_acquire().await;
    let made = pool.create_table().await;
    let then = pass(&pool.table_lock(&name())).await;
    table.run(&[&format!("DROP DATABASE {empty}")]).await?;
    let said = missing.as_ref().map_or_else(ToString::to_string, |_| String::new());
    ensure!(said.contains("create_table()"), "it says {said:?}");
    ensure_refused("without the table", missing)?;
    made?;
    then
}

/// A stranger's transaction has the row, so the insert waits in the server. The lock is not had when the wait is over,
/// and the server ends the insert before the transaction ends, or it would make a row that nobody deletes.
#[apply(test!)]
async fn a_strangers_transaction_is_waited_for_and_not_longer(table: &Table) -> Result {
    let name = pool::name_apart(table).await?;
    for lease in [None, Some(LEASE)] {
        // A pool of its own: an insert that was ended is undone in the background, on the only connection.
        let pool = table.pool(&table.address(), 1);
        let acquire = async |wait| match lease {
            None => pool.table_lock(&name).acquire(wait).await,
            Some(lease) => pool.table_lease_lock(&name).lease(lease).acquire(wait).await,
        };
        let only = pool.conn(SOON).await?;
        let inserts_on = only.id();
        only.done();
        let mut human = table.outsider().await;
        let transaction = pool::holds_the_row(&mut human, &name).await?;
        ensure_taken("while a transaction is open", acquire(SHORT).await)?;
        pool::gone(table, inserts_on).await?;
        transaction.rollback().await?;
        acquire(SOON).await?.release().await?;
    }
    ensure_none(table.left(&name).await)
}

/// It waits longer than one insert may, and then has the lock. While a statement with an emoji runs, MySQL cannot read
/// its older table of connections.
#[apply(test!)]
async fn a_waiter_outlasts_a_strangers_transaction(table: &Table) -> Result {
    let (name, pool) = (pool::name_apart(table).await? + "🍌", table.client().await);
    let only = pool.conn(SOON).await?;
    let inserts_on = only.id();
    only.done();
    let mut human = table.outsider().await;
    let transaction = pool::holds_the_row(&mut human, &name).await?;
    let waiter = spawn_acquire(pool.table_lock(&name));
    pool::gone(table, inserts_on).await?;
    let another = table.client().await.conn(SOON).await;
    another.context("another connection")?.done();
    transaction.rollback().await?;
    waiter.await??.release().await?;
    ensure_none(table.left(&name).await)
}

/// What a stranger deletes, and has not committed, is still there.
#[apply(test!)]
async fn a_row_whose_deletion_is_not_committed_is_taken(table: &Table) -> Result {
    let (name, pool) = (pool::name_apart(table).await?, table.client().await);
    let mut stranger = table.outsider().await;
    let held = take(&pool.table_lock(&name)).await?;
    let mut transaction = stranger.begin().await?;
    let delete = sqlx::query("DELETE FROM tb_lock WHERE lock_name = ?").bind(&name);
    let deleted = delete.execute(&mut *transaction).await?;
    ensure_equal("rows", deleted.rows_affected(), 1_u64)?;
    ensure_taken("its deletion is open", pool.table_lock(&name).acquire(SHORT).await)?;
    transaction.rollback().await?;
    held.release().await?;
    ensure_none(table.left(&name).await)
}

/// Names that a collation may treat as equal.
const ALIKE: [(&str, &str); 6] = [("Stock", "stock"), ("a", "a "), ("é", "e"), ("ß", "s"), ("🍎", "🍌"), ("\u{e9}", "e\u{301}")];

/// In the migrations' table, and in the library's.
#[apply(test!)]
async fn names_that_are_only_alike_are_two_locks(table: &Table) -> Result {
    table.run(&["CREATE DATABASE names"]).await?;
    let own = TablePool::connect(&format!("mysql://root@{}/names", table.address())).await?;
    own.create_table().await?;
    for pool in [own, table.client().await] {
        for (one, other) in ALIKE {
            let begin = name();
            let names = [one, other].map(|end| format!("{begin}{end}"));
            let both = names.map(|name| pool.table_lease_lock(&name));
            let both = oversell_lock::MultiLock::new(both.into());
            both.acquire(SOON).await.context(one)?.release().await?;
        }
    }
    Ok(())
}

/// The owner of a process with the longest label, in the migrations' table, and in the library's.
#[apply(test!)]
async fn a_row_has_the_whole_of_a_long_owner(table: &Table) -> Result {
    table.run(&["CREATE DATABASE owners"]).await?;
    let process = Process::labelled(&"x".repeat(32)).context("a label")?;
    let own = format!("mysql://root@{}/owners", table.address());
    for url in [own, table.url.clone()] {
        let options = MySqlOptions::new(&url).process(process.clone());
        let pool = TablePool::new(options).context("a pool")?;
        pool.create_table().await?;
        let name = name();
        let held = take(&pool.table_lease_lock(&name).lease(LEASE)).await?;
        let owner: String = sqlx::query_scalar("SELECT owner FROM tb_lock WHERE lock_name = ?")
            .bind(&name)
            .fetch_one(&mut MySqlConnection::connect(&url).await?)
            .await?;
        let number = owner.strip_prefix(&format!("{process}:"));
        ensure!(number.is_some_and(|it| it.parse::<u64>().is_ok()), "{owner}");
        held.release().await?;
    }
    Ok(())
}

/// A table of an earlier version, or of the course's program, stays as it is.
#[apply(test!)]
async fn a_table_that_is_there_is_taken_as_it_is(table: &Table) -> Result {
    let make = include_str!("../../../../migrations/0002_lock.sql");
    let make = make.replace("tb_lock", "earlier.tb_lock");
    let row = "INSERT INTO earlier.tb_lock (lock_name) VALUES ('by-hand')";
    table.run(&["CREATE DATABASE earlier", &make, row]).await?;
    let pool = TablePool::connect(&format!("mysql://root@{}/earlier", table.address())).await?;
    pool.create_table().await?;
    let there = pool.table_lease_lock("by-hand").try_acquire().await;
    ensure_taken("the row that was there", there)?;
    pass(&pool.table_lock(&name())).await
}
