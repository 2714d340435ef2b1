//! The ceiling of the MySQL strategies: the very same statements on a product of its own, without HTTP.

use super::repeat::{Repeated, failed, per_second};
use crate::failure::Failure;
use oversell_lock::mysql::{Conn, MySqlOptions, MySqlPool};
use sqlx::{Executor, MySqlConnection};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(30);
const UPDATE: &str =
    "UPDATE db_stock SET count = count - 1, version = version + 1 WHERE id = ? AND count > 0";
const FOR_UPDATE: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
const READ: &str =
    "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";
const WRITE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?";

/// What each connection repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// §1.7.1: one statement.
    Update,
    /// §1.7.2: the transaction of four statements.
    ForUpdate,
}

/// Connections to MySQL, kept from one measurement to the next.
#[derive(Debug)]
pub(super) struct Direct {
    pool: MySqlPool,
    product: i64,
}

impl Work {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Update => "UPDATE without HTTP",
            Self::ForUpdate => "FOR UPDATE without HTTP",
        }
    }
}

impl Direct {
    /// At most so many connections to `url`; opens none yet.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where `url` is not a MySQL address.
    pub(super) fn new(url: &str, connections: usize, product: i64) -> Result<Self, Failure> {
        Ok(Self {
            pool: MySqlPool::new(MySqlOptions::new(url).connections(connections))
                .map_err(failed)?,
            product,
        })
    }

    /// How often the work is done in a second from so many connections, measured for so long.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where MySQL does not do it.
    pub(super) async fn per_second(
        &self,
        work: Work,
        connections: usize,
        time: Duration,
    ) -> Result<f64, Failure> {
        let mut workers = Vec::with_capacity(connections);
        for _ in 0..connections {
            let conn = self.pool.conn(WAIT).await.map_err(failed)?;
            let mut worker = Worker {
                conn,
                work,
                product: self.product,
            };
            // The first time prepares its statements.
            worker.once().await?;
            workers.push(worker);
        }
        per_second(workers, time).await
    }
}

/// A connection that does the work.
struct Worker {
    conn: Conn,
    work: Work,
    product: i64,
}

impl Repeated for Worker {
    async fn once(&mut self) -> Result<u32, Failure> {
        let done = once(&mut self.conn, self.work, self.product).await;
        done.map(|()| 1).map_err(failed)
    }

    fn end(self) {
        self.conn.done();
    }
}

async fn once(conn: &mut MySqlConnection, work: Work, product: i64) -> Result<(), sqlx::Error> {
    match work {
        Work::Update => sqlx::query(UPDATE)
            .bind(product)
            .execute(conn)
            .await
            .map(drop),
        Work::ForUpdate => {
            conn.execute("START TRANSACTION").await?;
            let count: i64 = sqlx::query_scalar(FOR_UPDATE)
                .bind(product)
                .fetch_one(&mut *conn)
                .await?;
            sqlx::query(WRITE)
                .bind(count - 1)
                .bind(product)
                .execute(&mut *conn)
                .await?;
            conn.execute("COMMIT").await.map(drop)
        }
    }
}

/// The section that the lock strategies guard: read, then write one less.
pub(super) async fn section(conn: &mut MySqlConnection, product: i64) -> Result<(), sqlx::Error> {
    let (count, _version, _fence): (i64, i64, u64) = sqlx::query_as(READ)
        .bind(product)
        .fetch_one(&mut *conn)
        .await?;
    sqlx::query(WRITE)
        .bind(count - 1)
        .bind(product)
        .execute(conn)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stock;

    #[test]
    fn the_ceilings_use_the_very_sql_of_the_strategies() {
        assert!(
            stock::find("single-update")
                .unwrap()
                .source
                .contains(UPDATE)
        );
        for (slug, sql) in [
            ("select-for-update", FOR_UPDATE),
            ("select-for-update", WRITE),
            ("none", READ),
            ("none", WRITE),
        ] {
            assert!(
                stock::find(slug).unwrap().source.contains(sql),
                "{slug}: {sql}"
            );
        }
    }
}
