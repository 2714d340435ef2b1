//! The table of one play: a hundred products, numbers 10, 20, … 1000, so that there are gaps between them.
//!
//! 1. Each play makes a table of its own and drops it at the end.
//! 2. What a killed instance has left is dropped by the next play that finds it, ten minutes later.

use crate::error::Error;
use sqlx::{Executor, MySqlConnection};
use std::fmt::Write;

const LEFT_OVER: &str = "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
                         AND TABLE_NAME LIKE 'deadlock\\_%' AND CREATE_TIME < NOW() - INTERVAL 10 MINUTE";

/// A name that no other play has.
pub(super) fn name() -> String {
    format!("deadlock_{:08x}", fastrand::u32(..))
}

pub(super) async fn make(conn: &mut MySqlConnection, name: &str) -> Result<(), Error> {
    let left_over: Vec<String> = sqlx::query_scalar(LEFT_OVER).fetch_all(&mut *conn).await?;
    for table in left_over {
        drop(conn, &table).await?;
    }
    let create = format!(
        "CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, code VARCHAR(16) NOT NULL, count INT NOT NULL) ENGINE = InnoDB"
    );
    conn.execute(create.as_str()).await?;
    let mut fill = format!("INSERT INTO {name} VALUES ");
    for id in (10..=1000).step_by(10) {
        write!(
            fill,
            "{}({id}, 'P{id}', 100)",
            if id == 10 { "" } else { ", " }
        )
        .ok();
    }
    conn.execute(fill.as_str()).await?;
    Ok(())
}

pub(super) async fn drop(conn: &mut MySqlConnection, name: &str) -> Result<(), Error> {
    conn.execute(format!("DROP TABLE IF EXISTS {name}").as_str())
        .await?;
    Ok(())
}
