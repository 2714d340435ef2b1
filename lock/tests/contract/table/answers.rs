//! Refusals of a lock in the table, and the table in a service's own database.

use crate::support::*;
use oversell_lock::mysql::{MySqlOptions, TablePool};

fn pool(table: &Table, database: &str) -> TablePool {
    let url = format!("mysql://root@{}/{database}", table.address());
    TablePool::new(MySqlOptions::new(url).connections(1)).expect("an address")
}

/// The server answered with an error that a retry does not mend.
#[apply(test!)]
async fn a_table_that_is_not_there_is_a_refusal(table: &Table) -> Result {
    let pool = pool(table, "information_schema");
    let had = pool.table_lock(&name()).acquire(SOON).await;
    ensure_refused("without a table", had)?;
    let strange = TablePool::connect("postgres://root:secret@host/test").await;
    let text = strange.err().context("a strange address")?.to_string();
    let helps = text.contains("mysql://") && !text.contains("secret");
    ensure!(helps, "a strange address: {text}");
    Ok(())
}

/// In an empty database the table is created once, and equals the course's.
#[apply(test!)]
async fn a_service_of_ones_own_makes_the_table(table: &Table) -> Result {
    table.run(&["CREATE DATABASE a_service_of_ones_own"]).await?;
    let pool = pool(table, "a_service_of_ones_own");
    for _ in 0..2 {
        pool.create_table().await.context("the table")?;
    }
    pass(&pool.table_lease_lock(&name())).await?;
    let columns = "SELECT GROUP_CONCAT(CONCAT_WS(' ', COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT) \
                   ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS \
                   WHERE TABLE_NAME = 'tb_lock' AND TABLE_SCHEMA IN ('test', 'a_service_of_ones_own') \
                   GROUP BY TABLE_SCHEMA";
    let both: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut table.outsider().await).await?;
    ensure_equal("the tables", both.len(), 2)?;
    ensure_equal("the table", &both[0], &both[1])
}

#[apply(test!)]
async fn a_user_with_a_password_is_let_in_and_nobody_else(table: &Table) -> Result {
    let create = "CREATE USER shop@'127.0.0.1' IDENTIFIED BY 'secret'";
    let grant = "GRANT ALL ON test.* TO shop@'127.0.0.1'";
    table.run(&[create, grant]).await?;
    let address = |password: &str| format!("mysql://shop:{password}@{}/test", table.address());
    let pool = TablePool::connect(&address("secret")).await?;
    pass(&pool.table_lease_lock(&name())).await?;
    let stranger = TablePool::connect(&address("wrong")).await;
    ensure_refused("with a wrong password", stranger)
}
