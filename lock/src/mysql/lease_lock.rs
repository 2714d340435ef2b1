//! The lock table with a lease, a sweep of the rows that dead holders left, and re-entry.
//!
//! 1. Insert a row with the lock's name, an owner and the end of its lease, by the database's clock. If it exists, delete it if
//!    its lease has ended and try again; otherwise try again after about 50 ms.
//! 2. A task extends the lease every third ([`lease`](crate::lease)).
//! 3. An owner that has it re-enters: it checks that its row is still there and writes its hold count.
//! 4. Release: the last guard deletes the row, by name **and** owner.
//!
//! Next to read: `row.rs`.

use super::{
    failure::no_answer_error,
    pool::TablePool,
    row::{Contender, REPLY_TIMEOUT, Row, RowDescription},
};
use crate::{
    Guard, Holder, Lease, Lock, LockError, Owner, deadline,
    events::{LockEvent, Observer},
    guard::ExtendableLease,
    inherent,
    keeper::{Share, run_keeper},
    lease::owner_and_lease,
    reentry::{OwnerEntry, Reentry, entry_of},
    sure_until::SureUntil,
    time_left,
};
use futures::{FutureExt, future::BoxFuture};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The kind of lock in its events.
const KIND: &str = "TableLeaseLock";

/// The default lease, renewed every third: Redisson's.
const DEFAULT_LEASE: Lease = Lease::Watchdog(Duration::from_secs(30));

/// A contender for a row of `tb_lock` with a lease. Each acquire is its own owner; a handle that is given an
/// [owner](Self::owner) is re-entrant.
///
/// # Survives
///
/// A holder that dies (a waiter deletes its row once its lease has ended), a dropped caller, a command without an answer.
///
/// # What breaks it
///
/// - a holder that is paused beyond its lease and then writes, above all in a virtual machine that its host pauses;
/// - a clock of the database that jumps;
/// - an owner that is shared by tasks which should exclude each other;
/// - **a lease that ends after 19 January 2038 on a server without strict mode.** `expires_at` is a `TIMESTAMP`. With
///   `STRICT_TRANS_TABLES` in `sql_mode`, the default, such a lease is [`LockError::Refused`]; without it the server stores
///   a zero date, and the next contender gets in at once. MariaDB 11.5 and later go on to 2106. Until then only leases of
///   years end so late. `ALTER TABLE tb_lock MODIFY expires_at DATETIME(3) NULL` lifts the limit, while nobody holds a lock
///   and if all contenders have the same `time_zone` (theirs is UTC unless it is set).
///
/// # Cost
///
/// One statement to acquire, one to release, and one for each renewal. As of a [`TableLock`](super::TableLock), each waiter
/// asks twenty times a second, here with two statements.
///
/// # Format
///
/// Our own: a row as that of a [`TableLock`](super::TableLock), with the number of the owner's guards, and the end of the
/// lease by the database's clock.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, mysql::TablePool};
/// # use std::time::Duration;
/// # async fn example(pool: TablePool) -> Result<(), LockError> {
/// pool.create_table().await?;
/// let lock = pool.table_lease_lock("nightly-report");
/// let guard = lock.acquire(Duration::from_secs(5)).await?;
/// println!("{:?} has it", lock.holder().await?);
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TableLeaseLock {
    contender: Contender,
    lease: Lease,
    owner: Option<Owner>,
}

/// A row that the guards of one owner share; it is deleted with the last one. `lost` is set when the row is no longer ours.
#[derive(Debug)]
struct RowHold {
    row: Row,
    guards: AtomicU32,
    lost: CancellationToken,
    _owner_entry: Option<Arc<OwnerEntry<Self>>>,
}

/// One guard's share of a hold. Dropping the last one releases the hold in the background.
#[derive(Debug)]
struct RowShare {
    hold: Arc<RowHold>,
    lease: Lease,
    lease_start: Instant,
    /// Whether it is off the count already.
    finished: bool,
}

impl TablePool {
    /// Makes a contender for the lock `name`, of 1 to 50 characters, with a lease of 30 s that is renewed.
    #[must_use]
    pub fn table_lease_lock(&self, name: &str) -> TableLeaseLock {
        TableLeaseLock { contender: Contender::new(self, name), lease: DEFAULT_LEASE, owner: None }
    }
}

owner_and_lease!(TableLeaseLock: owner, lease;);

impl TableLeaseLock {
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
        self.contender.holder().await
    }

    /// Deletes the row, whoever has it, for operators; returns whether the lock was held: not if its lease had ended. Its holder is told at its next
    /// renewal, and one with a fixed lease when it releases or extends it.
    ///
    /// # Errors
    ///
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    ///
    /// It may be deleted or not.
    pub async fn force_unlock(&self) -> Result<bool, LockError> {
        self.contender.force_unlock().await
    }

    /// Sets what the row says about the contender.
    #[must_use]
    pub fn description(mut self, description: RowDescription) -> Self {
        self.contender.description = description;
        self
    }

    /// Inserts a row, waiting at most `wait`, and makes its first share.
    async fn take_first_share(&self, wait: Duration, entry: Option<Arc<OwnerEntry<RowHold>>>) -> Result<RowShare, LockError> {
        let (row, lease_start) = self.contender.insert_row(Some(self.lease), wait).await?;
        let hold = RowHold { row, guards: AtomicU32::new(1), lost: CancellationToken::new(), _owner_entry: entry };
        Ok(RowShare { hold: Arc::new(hold), lease: self.lease, lease_start, finished: false })
    }

    /// Shares the owner's hold and renews its lease, or takes a first one if it has none or its row is gone.
    async fn join_or_take(&self, owner: Owner, wait: Duration) -> Result<RowShare, LockError> {
        let (contender, end) = (&self.contender, deadline(wait));
        let entry = contender.pool.shared().of::<Reentry<RowHold>>().lock_entry(&contender.name, owner, end).await;
        let mut entry = entry.ok_or_else(|| contender.taken_error(wait))?;
        if let Some(share) = entry.exclusive.upgrade().and_then(|hold| RowShare::join(hold, self.lease))
            && share.write_count_and_lease(Some(share.lease), time_left(end) + REPLY_TIMEOUT).await?
        {
            return Ok(share);
        }
        let share = self.take_first_share(time_left(end), Some(entry_of(&entry))).await?;
        entry.exclusive = Arc::downgrade(&share.hold);
        Ok(share)
    }
}

impl Lock for TableLeaseLock {
    fn name(&self) -> &str {
        &self.contender.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        self.lease.check(&self.contender.name)?;
        let take = async {
            let share = match self.owner {
                Some(owner) => self.join_or_take(owner, wait).await?,
                None => self.take_first_share(wait, None).await?,
            };
            // A guard that is already lost is not given out: its row goes with the share.
            if self.lease.is_unsure(share.lease_start) {
                return Err(no_answer_error());
            }
            Ok(share)
        };
        let share = self.contender.report_acquire(KIND, take).await?;
        let sure_until = SureUntil::new(self.lease.sure_end(share.lease_start));
        let name = &*self.contender.name;
        let (guard, keeper) = Guard::with_sure_until(sure_until.clone(), name, None);
        let hold = Arc::downgrade(&share.hold);
        let guard = guard.with_lease(hold);
        self.contender.pool.tasks().spawn(run_keeper(share, sure_until, keeper));
        Ok(guard)
    }
}

inherent!(TableLeaseLock);

impl ExtendableLease for RowHold {
    fn extend(self: Arc<Self>, lease: Duration) -> BoxFuture<'static, Result<bool, LockError>> {
        let lease = Some(Lease::Fixed(lease));
        async move { self.write_count_and_lease(lease, REPLY_TIMEOUT, false).await }.boxed()
    }
}

impl RowShare {
    /// Makes one more share of `hold`; `None` if the last share has released it, or it was lost.
    fn join(hold: Arc<RowHold>, lease: Lease) -> Option<Self> {
        let one_more = |guards: u32| (guards > 0).then_some(guards + 1);
        hold.guards.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        let share = Self { hold, lease, lease_start: Instant::now(), finished: false };
        (!share.hold.lost.is_cancelled()).then_some(share)
    }

    /// As [`RowHold::write_count_and_lease`], but never over the connection for renewals.
    async fn write_count_and_lease(&self, lease: Option<Lease>, bound: Duration) -> Result<bool, LockError> {
        self.hold.write_count_and_lease(lease, bound, false).await
    }

    /// Takes this share off the count, and notes that for its drop; returns whether it was the last.
    fn leave_and_check_if_last(&mut self) -> bool {
        self.finished = true;
        self.hold.guards.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl RowHold {
    /// Writes the hold count and extends the lease, or writes only the count if it is `None`; `false` if the row is no longer
    /// ours: all guards become lost. A keeper may use the connection for renewals.
    async fn write_count_and_lease(&self, lease: Option<Lease>, bound: Duration, is_by_keeper: bool) -> Result<bool, LockError> {
        let guards = self.guards.load(Ordering::Relaxed);
        let still = self.row.renew(guards, lease, bound, is_by_keeper).await?;
        if !still {
            self.lost.cancel();
        }
        Ok(still)
    }
}

impl Share for RowShare {
    fn observer(&self) -> &Observer {
        self.hold.row.pool.observer()
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    /// Renews the lease; completes when the row is no longer ours or the pool is closed.
    async fn renew_until_lost(&self, sure_until: &SureUntil) {
        let limit = REPLY_TIMEOUT.min(self.lease.renewal_timeout());
        let renew = || self.hold.write_count_and_lease(Some(self.lease), limit, true);
        let late = |left| {
            let name = &self.hold.row.name;
            self.observer().observe(LockEvent::RenewedLate { kind: KIND, name, left });
        };
        tokio::select! {
            () = self.hold.lost.cancelled() => {}
            () = self.hold.row.pool.wait_until_closed() => {}
            () = self.lease.renew_until_gone(self.lease_start, sure_until, late, None, renew) => {}
        }
    }

    /// Deletes the row if this was the last share, and otherwise writes the new hold count; [`LockError::Lost`] if the row is no
    /// longer ours. A lost share does nothing here.
    async fn finish(mut self, lost: bool) -> Result<(), LockError> {
        if lost {
            return Ok(());
        }
        if self.leave_and_check_if_last() {
            return self.hold.row.release().await;
        }
        // A later share may have been the last one and have deleted the row before this write.
        let still = self.write_count_and_lease(None, REPLY_TIMEOUT).await? || self.hold.guards.load(Ordering::Relaxed) == 0;
        if still { Ok(()) } else { Err(LockError::lost(&self.hold.row.name)) }
    }
}

impl Drop for RowShare {
    /// Takes the share off the count; the row is deleted in the background when the last share drops the hold.
    fn drop(&mut self) {
        if !self.finished {
            self.leave_and_check_if_last();
        }
    }
}
