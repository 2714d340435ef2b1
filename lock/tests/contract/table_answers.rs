//! What both table locks say of themselves: who has one, and why one was not had.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name},
    table::{Plain, Table},
};
use oversell_lock::{
    Lease, Lock, LockError, Process,
    mysql::{MySqlOptions, MySqlPool},
};
use std::{sync::Arc, time::Duration};

const LEASE: Lease = Lease::Watchdog(Duration::from_secs(9));

fn pool(table: &Table<Plain>, database: &str, process: &Process) -> MySqlPool {
    let url = format!("mysql://root@{}/{database}", table.server());
    MySqlPool::new(
        MySqlOptions::new(url)
            .connections(1)
            .process(process.clone()),
    )
    .expect("an address")
}

/// The row names the process as people know it, and says how long it is leased; where nobody has the lock, nobody is named.
pub(crate) async fn a_row_says_who_holds_it_and_for_how_long(table: Arc<Table<Plain>>) -> Verdict {
    let process = says("a label", Process::labelled("shop-3"))?;
    let pool = pool(&table, "test", &process);
    let (plain, leased) = (
        pool.table_lock(&name()),
        pool.table_lease_lock(&name()).lease(LEASE),
    );
    let guards = [
        says("plain", plain.acquire(SOON).await)?,
        says("leased", leased.acquire(SOON).await)?,
    ];
    let forever = says("its holder", plain.holder().await)?.ok_or("no holder of the plain one")?;
    ensure(
        forever.remaining.is_none() && forever.id.starts_with("shop-3-"),
        || format!("plain: {forever:?}"),
    )?;
    let while_it_lasts =
        says("its holder", leased.holder().await)?.ok_or("no holder of the leased one")?;
    let lasts = |left: Duration| left <= LEASE.duration() && left > LEASE.duration() / 2;
    ensure(while_it_lasts.remaining.is_some_and(lasts), || {
        format!("leased: {while_it_lasts:?}")
    })?;
    for guard in guards {
        says("release", guard.release().await)?;
    }
    let nobody = (
        says("nobody", plain.holder().await)?,
        says("nobody", leased.holder().await)?,
    );
    ensure(nobody == (None, None), || format!("released: {nobody:?}"))
}

/// The only connection is in use: nobody can tell whether the lock is free, and so nobody says that it is taken.
pub(crate) async fn a_pool_without_a_connection_says_nothing_of_the_lock(
    table: Arc<Table<Plain>>,
) -> Verdict {
    let (name, pool) = (name(), pool(&table, "test", &Process::new()));
    let conn = says("the connection", pool.conn(SOON).await)?;
    let had = pool
        .table_lock(&name)
        .acquire(Duration::from_millis(50))
        .await;
    ensure(matches!(had, Err(LockError::Unavailable { .. })), || {
        format!("without a connection: {had:?}")
    })?;
    conn.done();
    says(
        "release",
        says("with one", pool.table_lock(&name).acquire(SOON).await)?
            .release()
            .await,
    )
}

/// The server has answered, with an error that asking again does not mend.
pub(crate) async fn a_table_that_is_not_there_is_a_refusal(table: Arc<Table<Plain>>) -> Verdict {
    let pool = pool(&table, "information_schema", &Process::new());
    let had = pool.table_lock(&name()).acquire(SOON).await;
    ensure(matches!(had, Err(LockError::Refused { .. })), || {
        format!("without a table: {had:?}")
    })?;
    let strange = MySqlPool::connect("postgres://root:secret@host/test")
        .await
        .err();
    let text = strange.map(|e| e.to_string()).unwrap_or_default();
    ensure(
        text.contains("mysql://") && !text.contains("secret"),
        || format!("a strange address: {text}"),
    )
}

/// A service of its own, with an empty database: the table is made, once, and is that of the course's service.
pub(crate) async fn a_service_of_ones_own_makes_the_table(table: Arc<Table<Plain>>) -> Verdict {
    let mut outsider = table.outsider().await;
    let create = sqlx::query("CREATE DATABASE a_service_of_ones_own")
        .execute(&mut outsider)
        .await;
    create.map_err(|e| e.to_string())?;
    let (name, pool) = (
        name(),
        pool(&table, "a_service_of_ones_own", &Process::new()),
    );
    for _ in 0..2 {
        says("the table", pool.create_table().await)?;
    }
    says(
        "release",
        says("a lock", pool.table_lease_lock(&name).acquire(SOON).await)?
            .release()
            .await,
    )?;
    let columns = "SELECT GROUP_CONCAT(CONCAT_WS(' ', COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT) \
                   ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS \
                   WHERE TABLE_NAME = 'tb_lock' AND TABLE_SCHEMA IN ('test', 'a_service_of_ones_own') \
                   GROUP BY TABLE_SCHEMA";
    let both: Vec<String> = sqlx::query_scalar(columns)
        .fetch_all(&mut outsider)
        .await
        .map_err(|e| e.to_string())?;
    ensure(both.len() == 2 && both[0] == both[1], || {
        format!("the tables differ: {both:#?}")
    })
}

pub(crate) async fn a_user_with_a_password_is_let_in_and_nobody_else(
    table: Arc<Table<Plain>>,
) -> Verdict {
    let (name, mut outsider) = (name(), table.outsider().await);
    for statement in [
        "CREATE USER shop@'127.0.0.1' IDENTIFIED BY 'secret'",
        "GRANT ALL ON test.* TO shop@'127.0.0.1'",
    ] {
        sqlx::query(statement)
            .execute(&mut outsider)
            .await
            .map_err(|e| e.to_string())?;
    }
    let address = |password: &str| format!("mysql://shop:{password}@{}/test", table.server());
    let pool = says("connect", MySqlPool::connect(&address("secret")).await)?;
    says(
        "release",
        says("its lock", pool.table_lease_lock(&name).acquire(SOON).await)?
            .release()
            .await,
    )?;
    let stranger = MySqlPool::connect(&address("wrong")).await;
    ensure(matches!(stranger, Err(LockError::Refused { .. })), || {
        format!("with a wrong password: {stranger:?}")
    })
}
