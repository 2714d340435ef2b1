//! A row as a lock: the unique key on `lock_name` lets one insert succeed.
//!
//! 1. Insert a row with the lock's name. If it exists, another holds the lock: try again after about 50 ms.
//! 2. Release: delete the row, by name **and** owner, until the server has answered.
//!
//! Next to read: `row.rs`, then `lease_lock.rs`, which has a lease.

use super::{
    pool::TablePool,
    row::{Contender, Row, RowDescription},
};
use crate::{
    Guard, Holder, Lock, LockError, MAX_DURATION,
    events::Observer,
    inherent,
    keeper::{Share, run_keeper},
    sure_until::SureUntil,
};
use std::time::Duration;
use tokio::time::Instant;

/// The kind of lock in its events.
const KIND: &str = "TableLock";

/// A contender for a row of `tb_lock`, without a lease: the row stays until it is deleted.
///
/// # Survives
///
/// Any number of processes, a holder that panics or is dropped, a lost answer.
///
/// # What breaks it
///
/// **A holder that dies: its row blocks everybody until somebody deletes it** ([`force_unlock`](Self::force_unlock)), because
/// there is no lease. [`TableLeaseLock`](super::TableLeaseLock) has one. A `lock_name` whose collation treats different names
/// as equal (see [`create_table`](TablePool::create_table)).
///
/// # Cost
///
/// One statement to acquire and one to release. Each waiter asks the server twenty times a second: a thousand waiters
/// leave it, and the pool, little time for the holder.
///
/// # Format
///
/// Our own: a row of `tb_lock` ([`create_table`](TablePool::create_table)) with the lock's name, which is unique, and a
/// fresh owner.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, mysql::TablePool};
/// # use std::time::Duration;
/// # async fn example(pool: TablePool) -> Result<(), LockError> {
/// pool.create_table().await?;
/// let guard = pool.table_lock("nightly-report").acquire(Duration::from_secs(5)).await?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TableLock(Contender);

impl TablePool {
    /// Makes a contender for the lock `name`, of 1 to 50 characters, whose row stays until it is deleted.
    #[must_use]
    pub fn table_lock(&self, name: &str) -> TableLock {
        TableLock(Contender::new(self, name))
    }
}

impl TableLock {
    /// Returns the holder; `None` if the lock is free.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server did not answer or the pool had no connection for 3 s,
    /// [`LockError::Refused`] if it answered with an error.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn holder(&self) -> Result<Option<Holder>, LockError> {
        self.0.holder().await
    }

    /// Deletes the row, whoever has it, as an operator must after a holder has died; returns whether there was one. A
    /// living holder learns of it when it releases.
    ///
    /// # Errors
    ///
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    ///
    /// It may be deleted or not.
    pub async fn force_unlock(&self) -> Result<bool, LockError> {
        self.0.force_unlock().await
    }

    /// Sets what the row says about the contender.
    #[must_use]
    pub fn description(mut self, description: RowDescription) -> Self {
        self.0.description = description;
        self
    }
}

impl Lock for TableLock {
    fn name(&self) -> &str {
        &self.0.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (row, _) = self.0.report_acquire(KIND, self.0.insert_row(None, wait)).await?;
        let (guard, keeper) = Guard::new(&*self.0.name, None);
        // There is no lease to end.
        let sure_until = SureUntil::new(Instant::now() + MAX_DURATION);
        let share = TableShare(row);
        self.0.pool.tasks().spawn(run_keeper(share, sure_until, keeper));
        Ok(guard)
    }
}

inherent!(TableLock);

/// A guard's share of a row without a lease, which stays until its holder releases it. Only a person can take it away meanwhile.
struct TableShare(Row);

impl Share for TableShare {
    fn observer(&self) -> &Observer {
        self.0.pool.observer()
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    /// Renews nothing; completes when the pool is closed.
    async fn renew_until_lost(&self, _: &SureUntil) {
        self.0.pool.wait_until_closed().await;
    }

    /// Deletes the row; after a loss in the background.
    async fn finish(self, lost: bool) -> Result<(), LockError> {
        if lost { Ok(()) } else { self.0.release().await }
    }
}
