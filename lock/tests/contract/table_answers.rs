//! What both table locks say of themselves: their holder, and why one was refused.

use super::support::*;
use oversell_lock::mysql::{MySqlOptions, MySqlPool};

const LEASE: Lease = Lease::Watchdog(Duration::from_secs(9));

fn pool(table: &Table, database: &str, process: &Process) -> MySqlPool {
    let url = format!("mysql://root@{}/{database}", table.address());
    let options = MySqlOptions::new(url).connections(1);
    MySqlPool::new(options.process(process.clone())).expect("an address")
}

/// The row names the process as people know it, and says how long it is leased; where nobody has the lock, nobody is named.
#[apply(test!)]
async fn a_row_says_who_holds_it_and_for_how_long(table: &Table) -> Result {
    let process = Process::labelled("shop-3").context("a label")?;
    let pool = pool(table, "test", &process);
    let (plain, leased) = (pool.table_lock(&name()), pool.table_lease_lock(&name()));
    let leased = leased.lease(LEASE);
    let guards = [take(&plain).await?, take(&leased).await?];
    let forever = plain.holder().await?.context("of the plain one")?;
    is("how long the plain one lasts", forever.remaining, None)?;
    let named = forever.id.starts_with("shop-3-");
    ensure!(named, "plain: {forever:?}");
    let leased_to = leased.holder().await?.context("of the leased one")?;
    let lasts = |left: Duration| left <= LEASE.duration() && left > LEASE.duration() / 2;
    let lasts = leased_to.remaining.is_some_and(lasts);
    ensure!(lasts, "leased: {leased_to:?}");
    for guard in guards {
        guard.release().await?;
    }
    let nobody = (plain.holder().await?, leased.holder().await?);
    is("released", nobody, (None, None))
}

/// The server has answered, with an error that asking again does not mend.
#[apply(test!)]
async fn a_table_that_is_not_there_is_a_refusal(table: &Table) -> Result {
    let pool = pool(table, "information_schema", &Process::new());
    let had = pool.table_lock(&name()).acquire(SOON).await;
    refused("without a table", had)?;
    let strange = MySqlPool::connect("postgres://root:secret@host/test").await;
    let text = strange.err().context("a strange address")?.to_string();
    let helps = text.contains("mysql://") && !text.contains("secret");
    ensure!(helps, "a strange address: {text}");
    Ok(())
}

/// A service of its own, with an empty database: the table is made, once, and is that of the course's service.
#[apply(test!)]
async fn a_service_of_ones_own_makes_the_table(table: &Table) -> Result {
    let mut outsider = table.outsider().await;
    let create = sqlx::query("CREATE DATABASE a_service_of_ones_own");
    create.execute(&mut outsider).await?;
    let pool = pool(table, "a_service_of_ones_own", &Process::new());
    for _ in 0..2 {
        pool.create_table().await.context("the table")?;
    }
    pass(&pool.table_lease_lock(&name())).await?;
    let columns = "SELECT GROUP_CONCAT(CONCAT_WS(' ', COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT) \
                   ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS \
                   WHERE TABLE_NAME = 'tb_lock' AND TABLE_SCHEMA IN ('test', 'a_service_of_ones_own') \
                   GROUP BY TABLE_SCHEMA";
    let both: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut outsider).await?;
    is("the tables", both.len(), 2)?;
    is("the table", &both[0], &both[1])
}

#[apply(test!)]
async fn a_user_with_a_password_is_let_in_and_nobody_else(table: &Table) -> Result {
    let (name, mut outsider) = (name(), table.outsider().await);
    for statement in [
        "CREATE USER shop@'127.0.0.1' IDENTIFIED BY 'secret'",
        "GRANT ALL ON test.* TO shop@'127.0.0.1'",
    ] {
        sqlx::query(statement).execute(&mut outsider).await?;
    }
    let address = |password: &str| format!("mysql://shop:{password}@{}/test", table.address());
    let pool = MySqlPool::connect(&address("secret")).await?;
    pass(&pool.table_lease_lock(&name)).await?;
    let stranger = MySqlPool::connect(&address("wrong")).await;
    refused("with a wrong password", stranger)
}
