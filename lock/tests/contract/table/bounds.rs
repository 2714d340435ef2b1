//! A lock in the table while its server is stopped, refuses, or closed an idle connection: each call ends, reports an
//! unavailable server and never a taken lock, and no broken connection returns to the pool.

use crate::{support::*, table::pool};
use oversell_lock::mysql::{Conn, MySqlOptions, PoolExhausted, RowDescription, TableLeaseLock, TablePool};
use sqlx::Connection;

/// A wait that ends long before a call may.
const BRIEF: Duration = Duration::from_millis(100);

/// The call fails, within a time that is far above the library's own limits and below what it waits for.
async fn ensure_fails_in_time(what: &str, call: impl Future<Output = Answer>) -> Result {
    let answer = timeout(SOON, call).await;
    ensure_unavailable(what, answer.with_context(|| format!("{what}: without an end"))?)
}

/// So does every call that needs a connection, unless another holds it.
async fn calls_end(pool: &TablePool, own: &TableLeaseLock, inner: Guard) -> Result {
    let other = pool.table_lease_lock(&name());
    let ended = tokio::try_join!(
        ensure_fails_in_time("re-entry", async { own.acquire(BRIEF).await.map(drop) }),
        ensure_fails_in_time("holder", async { other.holder().await.map(drop) }),
        ensure_fails_in_time("release of one of two", inner.release()),
        ensure_fails_in_time("create_table", pool.create_table()),
    );
    ended.map(drop)
}

/// The connection is muted for good in the middle of an acquire.
#[apply(test!)]
async fn no_call_waits_for_a_server_that_has_fallen_silent(table: &Table) -> Result {
    let name = name();
    let mute = Mute::to(table.address())?;
    let pool = table.pool(&mute.address(), 8);
    let own = pool.table_lease_lock(&name).owner(pool.owner());
    let (outer, inner) = (take(&own).await?, take(&own).await?);
    let lock = pool.table_lease_lock(&name);
    // In the middle of a try: the waiter has found the row and checks its lease.
    mute.mute_at("SELECT COUNT(*) FROM tb_lock");
    ensure_fails_in_time("acquire", async { lock.acquire(BRIEF).await.map(drop) }).await?;
    let ended = calls_end(&pool, &own, inner).await;
    mute.heal();
    ended?;
    outer.release().await?;
    ensure_none(table.left(&name).await)
}

/// A stranger's transaction locks the row and does not end: a re-entry waits as long as it was told to.
#[apply(test!)]
async fn a_re_entry_does_not_wait_for_a_strangers_transaction(table: &Table) -> Result {
    let (name, pool, mut stranger) = (name(), table.client().await, table.outsider().await);
    let own = pool.table_lease_lock(&name).owner(pool.owner());
    let own = own.lease(Lease::Watchdog(SOON * 3));
    let outer = take(&own).await?;
    let mut transaction = stranger.begin().await?;
    sqlx::query("SELECT id FROM tb_lock WHERE lock_name = ? FOR UPDATE").bind(&name).execute(&mut *transaction).await?;
    ensure_fails_in_time("re-entry", async { own.acquire(BRIEF).await.map(drop) }).await?;
    transaction.rollback().await?;
    ensure_kept("the outer hold", &outer)?;
    pass(&own).await?;
    outer.release().await?;
    ensure_none(table.left(&name).await)
}

/// All connections are in use, so nobody knows the lock's state or says that it is taken.
#[apply(test!)]
async fn a_pool_without_a_connection_never_says_that_a_lock_is_taken(table: &Table) -> Result {
    let (name, pool) = (name(), table.pool(&table.address(), 1));
    let own = pool.table_lease_lock(&name).owner(pool.owner());
    let own = own.lease(Lease::Watchdog(SOON * 3));
    let (outer, inner) = (take(&own).await?, take(&own).await?);
    let only = pool.conn(SOON).await?;
    let none = pool.conn(BRIEF).await.map(Conn::done);
    let Err(LockError::Unavailable { reason, .. }) = &none else {
        bail!("a second connection: {none:?}");
    };
    let exhausted = reason.downcast_ref::<PoolExhausted>();
    let exhausted = exhausted.context("the reason is another")?;
    ensure_equal("how long it was waited for", exhausted.waited, BRIEF)?;
    let plain = pool.table_lock(&name);
    ensure_fails_in_time("acquire", async { plain.acquire(BRIEF).await.map(drop) }).await?;
    calls_end(&pool, &own, inner).await?;
    only.done();
    outer.release().await?;
    ensure_none(table.left(&name).await)
}

/// One connection to a database whose `tb_lock` refuses each insert with the error in its `desc`.
async fn refusing(table: &Table) -> Result<MySqlOptions> {
    let statements = [
        "CREATE DATABASE refusing",
        "CREATE TABLE refusing.tb_lock LIKE test.tb_lock",
        "CREATE TRIGGER refusing.refuses BEFORE INSERT ON refusing.tb_lock FOR EACH ROW BEGIN \
         DECLARE number INT DEFAULT CAST(NEW.`desc` AS UNSIGNED); \
         IF number > 0 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = number; END IF; END",
    ];
    table.run(&statements).await?;
    let url = format!("mysql://root@{}/refusing", table.address());
    Ok(MySqlOptions::new(url).connections(1))
}

/// A server that became read-only, left its cluster or shuts down answers the same each time: the next try uses another
/// connection, which leads to the server that has the address by then.
#[apply(test!)]
async fn a_connection_to_a_server_that_was_demoted_is_not_used_again(table: &Table) -> Result {
    let options = refusing(table).await?;
    // Each try has a pool of its own: an unknown insert is undone in the background, on the only connection.
    let refused_with = async |number: u32| -> Result<_> {
        let pool = TablePool::new(options.clone())?;
        let description = RowDescription { desc: number.to_string(), ..RowDescription::default() };
        let before = pool.conn(SOON).await?;
        let used = before.id();
        before.done();
        let tried = pool.table_lock(&name()).description(description).try_acquire().await;
        let after = pool.conn(SOON).await?;
        let used = used == after.id();
        after.done();
        Ok((tried.map(drop), used))
    };
    for number in [1047, 1290, 1836, 3032, 3101, 4031, 1053, 1927] {
        let (tried, again) = refused_with(number).await?;
        ensure_unavailable(&number.to_string(), tried)?;
        ensure!(!again, "{number}: the connection is used again");
    }
    // A bad row does not make its connection bad.
    let (tried, again) = refused_with(1644).await?;
    ensure_refused("1644", tried)?;
    ensure!(again, "1644: the connection is not used again");
    Ok(())
}

/// The server closes idle connections (`wait_timeout`): no call fails, because the pool pings what was idle for a
/// second.
#[apply(test!)]
async fn a_connection_that_the_server_closed_is_replaced(table: &Table) -> Result {
    let pool = table.pool(&table.address(), 1);
    let mut only = pool.conn(SOON).await?;
    sqlx::query("SET SESSION wait_timeout = 2").execute(&mut *only).await?;
    let id = only.id();
    only.done();
    pool::gone(table, id).await?;
    pass(&pool.table_lock(&name()).boxed()).await
}

/// The user may not delete: the release says so at once, and the row goes when the right is granted.
#[apply(test!)]
async fn a_release_that_is_refused_says_so_and_goes_on(table: &Table) -> Result {
    // Everybody has all rights in databases called `test`.
    let statements = [
        "CREATE DATABASE guarded",
        "CREATE TABLE guarded.tb_lock LIKE test.tb_lock",
        "CREATE USER writer@'127.0.0.1'",
        "GRANT SELECT, INSERT, UPDATE ON guarded.tb_lock TO writer@'127.0.0.1'",
    ];
    table.run(&statements).await?;
    let url = format!("mysql://writer@{}/guarded", table.address());
    let pool = TablePool::connect(&url).await?;
    let lock = pool.table_lock(&name());
    let held = take(&lock).await?;
    ensure_refused("without the right", held.release().await)?;
    ensure!(lock.holder().await?.is_some(), "the row has gone");
    let grant = "GRANT DELETE ON guarded.tb_lock TO writer@'127.0.0.1'";
    table.run(&[grant]).await?;
    let gone = async || matches!(lock.holder().await, Ok(None));
    until("the row goes", gone).await
}
