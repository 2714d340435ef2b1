//! Under which conditions the figures were got: they mean little without.

use crate::addresses::Addresses;
use oversell_lock::mysql::pool::MySqlPool;
use serde::Serialize;
use std::{collections::BTreeMap, fmt, time::Duration};

const DURABILITY: &str = "SHOW VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', \
     'log_bin', 'tx_isolation', 'transaction_isolation')";
const WAIT: Duration = Duration::from_secs(3);

/// Where and how figures were got.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Conditions {
    /// The command line.
    pub(super) command: String,
    /// The version of this program.
    pub(super) version: &'static str,
    /// Cores that generator, nginx, instances and servers share; of the generator alone where the cluster is elsewhere.
    pub(super) cores: usize,
    /// MySQL's own settings that decide what a commit costs; empty where they cannot be read.
    pub(super) mysql: BTreeMap<String, String>,
}

impl Conditions {
    /// Reads them; `lab` is the lab that is measured, where it is one.
    pub(super) async fn of(lab: Option<&Addresses>) -> Self {
        let mysql = match lab {
            Some(lab) => durability(&lab.mysql.url).await,
            None => None,
        };
        Self {
            command: std::env::args().collect::<Vec<_>>().join(" "),
            version: env!("CARGO_PKG_VERSION"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            mysql: mysql.unwrap_or_default(),
        }
    }
}

async fn durability(url: &str) -> Option<BTreeMap<String, String>> {
    let mut conn = MySqlPool::new(url, 1).ok()?.conn(WAIT).await.ok()?;
    let rows: Vec<(String, String)> = sqlx::query_as(DURABILITY).fetch_all(&mut *conn).await.ok()?;
    conn.done();
    Some(rows.into_iter().collect())
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oversell {}, {} cores", self.version, self.cores)?;
        self.mysql.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))
    }
}
