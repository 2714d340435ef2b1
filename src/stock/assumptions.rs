//! What the strategies assume of MySQL, asked of the server itself.
//!
//! 1. The engine of a table has transactions: that of `db_stock` if a strategy sells in one, that of `tb_lock` if its lock is a
//!    row there ([`unfit_tables`]). Without them FOR UPDATE locks nothing and ROLLBACK undoes nothing, and no statement warns;
//!    docs/engines.md has the figures. A strategy that rests on such a table is refused (`Strategy::deduct`).
//! 2. A session commits each statement by itself, at REPEATABLE READ, and waits for a row that has changed. The pools set
//!    that (`ctx.rs`), and what stands between them and the server might undo it ([`other_settings`]).

use oversell_lock::mysql::Conn;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use sqlx::{Executor, Row as _};
use std::fmt;
use utoipa::ToSchema;

/// The tables that strategies rest on, if their engine has no transactions. A table that is just being altered is not listed.
const UNFIT_TABLES: &str = "SELECT CONVERT(TABLE_NAME USING utf8mb4), CONVERT(ENGINE USING utf8mb4) \
    FROM information_schema.TABLES JOIN information_schema.ENGINES USING (ENGINE) \
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('db_stock', 'tb_lock') AND COALESCE(TRANSACTIONS, 'NO') <> 'YES' \
    ORDER BY 1";

/// MySQL knows one name of the isolation level, MariaDB the other one or both.
const READ_SETTINGS: &str = "SHOW SESSION VARIABLES WHERE Variable_name IN \
    ('autocommit', 'innodb_snapshot_isolation', 'transaction_isolation', 'tx_isolation')";

/// A table whose engine has no transactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnfitTable {
    #[schema(example = "db_stock")]
    pub table: String,
    #[schema(example = "MyISAM")]
    pub engine: String,
}

impl fmt::Display for UnfitTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, engine } = self;
        write!(f, "the engine of {table} is {engine}, without transactions: ALTER TABLE {table} ENGINE = InnoDB")
    }
}

/// The unfit tables as this instance last saw them.
#[derive(Debug, Default)]
pub(crate) struct LastUnfitTables(pub(crate) RwLock<Vec<UnfitTable>>);

/// Reads which tables of the connection's database have an engine without transactions.
pub async fn unfit_tables(conn: &mut Conn) -> sqlx::Result<Vec<UnfitTable>> {
    let tables = sqlx::query_as(UNFIT_TABLES).fetch_all(&mut **conn).await?.into_iter();
    Ok(tables.map(|(table, engine)| UnfitTable { table, engine }).collect())
}

/// Reads which settings of this session are not what the strategies need, in words; `None` if all are.
pub async fn other_settings(conn: &mut Conn) -> sqlx::Result<Option<String>> {
    let mut others = Vec::new();
    for row in conn.fetch_all(READ_SETTINGS).await? {
        let (name, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let needed = match &*name {
            "autocommit" => "ON",
            "innodb_snapshot_isolation" => "OFF",
            _ => "REPEATABLE-READ",
        };
        if value != needed {
            others.push(format!("{name} is {value} in its sessions, and must be {needed}"));
        }
    }
    Ok((!others.is_empty()).then(|| others.join("; ")))
}
