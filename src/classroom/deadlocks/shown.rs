//! The server's view of two transactions: waiters, locked rows, the latest deadlock, a plan.
//!
//! `SHOW ENGINE INNODB STATUS` has it all, and is never stale (`information_schema.INNODB_TRX` is: it repeats itself
//! for as long as it is asked more often than every 100 ms). It needs the privilege PROCESS. Without it, a counter of
//! all waits for row locks has to do, which anybody may read, and which counts those of others too.

use crate::error::{Error, error_number};
use serde::Serialize;
use sqlx::{Executor, MySqlConnection, Row};
use utoipa::ToSchema;

const SHOW_STATUS: &str = "SHOW ENGINE INNODB STATUS";
const SHOW_WAITS: &str = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";

/// The error for a missing privilege.
const ACCESS_DENIED: u16 = 1227;

/// How the server carries out a statement, as EXPLAIN says.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DeadlockPlan {
    /// Before or after the index.
    #[schema(example = "before the index")]
    pub when: &'static str,
    #[schema(example = "UPDATE deadlock_5f3a0c11 SET count = count - 1 WHERE code = 'P500'")]
    pub sql: String,
    /// How it finds the rows: `ALL`, and `index` by the primary key, look at each.
    #[schema(example = "ALL")]
    pub r#type: Option<String>,
    /// The index that it uses.
    #[schema(example = "idx_code")]
    pub key: Option<String>,
    /// How many rows it expects to look at.
    #[schema(example = "100")]
    pub rows: Option<String>,
    /// Column `Extra`.
    #[schema(example = "Using where")]
    pub extra: Option<String>,
}

/// The text of SHOW ENGINE INNODB STATUS; `None` without the privilege to see it.
#[derive(Debug)]
pub(super) struct InnodbStatus(Option<String>);

impl InnodbStatus {
    /// Asks the server for it.
    pub(super) async fn fetch(conn: &mut MySqlConnection) -> Result<Self, Error> {
        match conn.fetch_one(SHOW_STATUS).await.and_then(|row| row.try_get_unchecked("Status")) {
            Ok(status) => Ok(Self(Some(status))),
            Err(error) if error_number(&error) == Some(ACCESS_DENIED) => Ok(Self(None)),
            Err(error) => Err(error.into()),
        }
    }

    /// The block of the status about the transaction of this connection; `None` if there is none, or without the privilege.
    fn transaction_block(&self, connection: u64) -> Option<&str> {
        let thread = format!(" thread id {connection}, ");
        self.0.as_deref()?.split("---TRANSACTION ").skip(1).find(|block| block.contains(&thread))
    }

    /// Whether this connection waits for a row lock; without the privilege PROCESS, whether any connection does.
    pub(super) async fn is_waiting(&self, conn: &mut MySqlConnection, connection: u64) -> Result<bool, Error> {
        if self.0.is_some() {
            return Ok(self.transaction_block(connection).is_some_and(|block| block.contains("LOCK WAIT")));
        }
        let waits: String = conn.fetch_one(SHOW_WAITS).await?.try_get_unchecked(1)?;
        Ok(waits != "0")
    }

    /// The number of rows that the transaction of this connection has locked; `None` if the server does not show it.
    pub(super) fn row_locks(&self, connection: u64) -> Option<u64> {
        let (before, _) = self.transaction_block(connection)?.split_once(" row lock(s)")?;
        before.rsplit(' ').next()?.parse().ok()
    }

    /// The block of the status about the latest deadlock, if it was in this table; else the reason why it is not shown.
    pub(super) fn latest_deadlock(&self, table: &str) -> Result<String, &'static str> {
        let status =
            self.0.as_deref().ok_or("SHOW ENGINE INNODB STATUS needs the privilege PROCESS: GRANT PROCESS ON *.* TO …")?;
        let section = status.split_once("LATEST DETECTED DEADLOCK").and_then(|(_, rest)| {
            let (section, _) = rest.split_once("\nTRANSACTIONS\n")?;
            Some(section.trim_matches(|c: char| c == '-' || c.is_whitespace()).to_owned())
        });
        section.filter(|section| section.contains(table)).ok_or("the server shows a later deadlock, of somebody else")
    }
}

/// Asks the server by EXPLAIN how it would carry out `sql`, which it does not carry out.
pub(super) async fn plan(conn: &mut MySqlConnection, when: &'static str, sql: String) -> Result<DeadlockPlan, Error> {
    // A table also where MySQL's `explain_format` is TREE.
    let explain = format!("EXPLAIN FORMAT=TRADITIONAL {sql}");
    let row = conn.fetch_one(explain.as_str()).await?;
    // MariaDB gives texts, MySQL numbers too; sent as text they are the same.
    read_plan(when, sql, |column| row.try_get_unchecked::<Option<String>, _>(column).ok())
}

/// Reads a plan by its columns: `None` is a missing column. An answer without the column `type` is no plan.
fn read_plan(when: &'static str, sql: String, column: impl Fn(&str) -> Option<Option<String>>) -> Result<DeadlockPlan, Error> {
    let no_plan = || Error::Internal("EXPLAIN has answered without a column `type`".to_owned());
    Ok(DeadlockPlan {
        when,
        sql,
        r#type: column("type").ok_or_else(no_plan)?,
        key: column("key").flatten(),
        rows: column("rows").flatten(),
        extra: column("Extra").flatten(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_as_a_tree_is_no_plan() {
        let read = |columns: &[(&str, &str)]| {
            read_plan("before", "UPDATE goods".to_owned(), |name| {
                let found = columns.iter().find(|(column, _)| *column == name);
                found.map(|(_, value)| Some((*value).to_owned()))
            })
        };
        let table = read(&[("id", "1"), ("type", "ALL"), ("rows", "100")]).expect("a plan");
        assert_eq!(table.r#type.as_deref(), Some("ALL"));
        assert_eq!((table.key, table.rows.as_deref()), (None, Some("100")));
        let tree = read(&[("EXPLAIN", "-> Update goods (immediate)")]);
        assert!(matches!(tree, Err(Error::Internal(_))), "{tree:?}");
    }

    const STATUS: &str = "=====\nLATEST DETECTED DEADLOCK\n------------------------\n*** (1) TRANSACTION:\nTRANSACTION 7, ACTIVE 0 sec\n\
        MariaDB thread id 31, OS thread handle 1, query id 9\nUPDATE deadlock_1 SET\n*** WE ROLL BACK TRANSACTION (2)\n------------\n\
        TRANSACTIONS\n------------\nTrx id counter 9\n---TRANSACTION 8, ACTIVE 0 sec starting index read\nmysql tables in use 1, \
        locked 1\nLOCK WAIT 3 lock struct(s), heap size 1128, 2 row lock(s), undo log entries 1\nMariaDB thread id 3, OS thread \
        handle 1, query id 64\n---TRANSACTION 9, ACTIVE 0 sec\n2 lock struct(s), heap size 1128, 101 row lock(s)\nMySQL thread id \
        31, OS thread handle 2\n--------\nFILE I/O\n";

    #[test]
    fn each_transaction_is_told_from_the_other_by_its_connection() {
        let status = InnodbStatus(Some(STATUS.into()));
        assert_eq!((status.row_locks(3), status.row_locks(31), status.row_locks(1)), (Some(2), Some(101), None));
        assert!(status.transaction_block(3).is_some_and(|block| block.contains("LOCK WAIT")));
        assert!(status.transaction_block(31).is_some_and(|block| !block.contains("LOCK WAIT")));
    }

    #[test]
    fn a_deadlock_is_shown_only_where_it_is_ours() {
        let status = InnodbStatus(Some(STATUS.into()));
        let ours = status.latest_deadlock("deadlock_1").expect("ours");
        assert!(ours.starts_with("*** (1)") && ours.ends_with("WE ROLL BACK TRANSACTION (2)"), "{ours}");
        assert!(status.latest_deadlock("deadlock_2").expect_err("another's").contains("somebody else"));
        assert!(InnodbStatus(None).latest_deadlock("deadlock_1").expect_err("nothing").contains("PROCESS"));
    }
}
