//! The ceiling of the MySQL strategies: the very same statements, from as many connections, without HTTP.

use crate::failure::Failure;
use oversell_lock::mysql::pool::{Conn, MySqlPool};
use sqlx::{Executor, MySqlConnection};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::Barrier, task::JoinSet};

const WAIT: Duration = Duration::from_secs(30);
/// The course's product.
const ID: i64 = 1;

const UPDATE: &str = "UPDATE db_stock SET count = count - 1, version = version + 1 WHERE id = ? AND count > 0";
const FOR_UPDATE: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
const READ: &str = "SELECT CAST(count AS SIGNED) AS count, version FROM db_stock WHERE id = ?";
const WRITE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?";

/// What each connection does again and again.
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
    connections: usize,
}

impl Direct {
    /// So many connections to `url`; opens none yet.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where `url` is not a MySQL address.
    pub(super) fn new(url: &str, connections: usize) -> Result<Self, Failure> {
        Ok(Self { pool: MySqlPool::new(url, connections).map_err(failed)?, connections })
    }

    /// How often the work is done in a second, `loops` times on each connection.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where MySQL does not do it.
    pub(super) async fn per_second(&self, work: Work, loops: usize) -> Result<f64, Failure> {
        let ready = Arc::new(Barrier::new(self.connections + 1));
        let mut workers = JoinSet::new();
        for conn in self.warm(work).await? {
            workers.spawn(repeat(conn, work, loops, Arc::clone(&ready)));
        }
        ready.wait().await;
        let begun = Instant::now();
        while let Some(done) = workers.join_next().await {
            done.map_err(|e| Failure::Unusable(format!("mysql: {e}")))?.map_err(failed)?;
        }
        Ok((self.connections * loops) as f64 / begun.elapsed().as_secs_f64())
    }

    /// All connections, each with its statements prepared.
    async fn warm(&self, work: Work) -> Result<Vec<Conn>, Failure> {
        let mut conns = Vec::with_capacity(self.connections);
        for _ in 0..self.connections {
            let mut conn = self.pool.conn(WAIT).await.map_err(failed)?;
            once(&mut conn, work).await.map_err(failed)?;
            conns.push(conn);
        }
        Ok(conns)
    }
}

async fn repeat(mut conn: Conn, work: Work, loops: usize, ready: Arc<Barrier>) -> Result<(), sqlx::Error> {
    ready.wait().await;
    for _ in 0..loops {
        once(&mut conn, work).await?;
    }
    conn.done();
    Ok(())
}

async fn once(conn: &mut MySqlConnection, work: Work) -> Result<(), sqlx::Error> {
    match work {
        Work::Update => sqlx::query(UPDATE).bind(ID).execute(conn).await.map(drop),
        Work::ForUpdate => {
            conn.execute("START TRANSACTION").await?;
            let count: i64 = sqlx::query_scalar(FOR_UPDATE).bind(ID).fetch_one(&mut *conn).await?;
            sqlx::query(WRITE).bind(count - 1).bind(ID).execute(&mut *conn).await?;
            conn.execute("COMMIT").await.map(drop)
        }
    }
}

/// The section that the lock strategies guard: read, then write one less.
pub(super) async fn section(conn: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let (count, _version): (i64, i64) = sqlx::query_as(READ).bind(ID).fetch_one(&mut *conn).await?;
    sqlx::query(WRITE).bind(count - 1).bind(ID).execute(conn).await.map(drop)
}

pub(super) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Unusable(format!("the ceiling cannot be measured: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stock;

    #[test]
    fn the_ceilings_use_the_very_sql_of_the_strategies() {
        assert!(stock::find("single-update").unwrap().source.contains(UPDATE));
        let row = include_str!("../../stock/row.rs");
        for sql in [FOR_UPDATE, READ, WRITE] {
            assert!(row.contains(sql), "{sql}");
        }
    }
}
