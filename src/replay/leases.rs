//! The locks of a replay: waiting for them, and ending their leases.
//!
//! Next: `servers.rs`, which reads them.

use super::{
    faults::Need,
    inject::SESSION_TIMEOUT,
    options::STEP_TIMEOUT,
    play::{Play, poll_until},
    shared_reads::LockEntry,
};
use crate::{error::Error, stock_admin::NODES};
use oversell_lab::fault::Action;
use std::time::Duration;

/// How far a node's clock jumps forward: longer than every lease by the clock, which is 60 s at most.
const CLOCK_JUMP: Duration = Duration::from_secs(90);

impl Play {
    /// Reads the servers, logs their changes, and returns the first lock; `None` if nobody holds one.
    pub(super) async fn first_lock(&self) -> Result<Option<LockEntry>, Error> {
        self.observer.refresh(&self.reader).await?;
        Ok(self.reader.read().await?.locks.into_iter().next())
    }

    /// The rest of the lease in milliseconds, -1 if it has none; `None` if nobody holds the lock, or its server has no leases.
    pub async fn lease_left(&self) -> Result<Option<i64>, Error> {
        Ok(self.first_lock().await?.and_then(|held| held.pttl))
    }

    /// Waits until the server has at least this many waiters behind the holder.
    pub(super) async fn wait_until_queued(&self, waiting: usize) -> Result<(), Error> {
        let late = format!("fewer than {waiting} wait for the lock");
        poll_until(
            STEP_TIMEOUT,
            &late,
            || async move { Ok(self.first_lock().await?.map_or(0, |held| held.queue.len()) > waiting) },
        )
        .await
    }

    /// Waits until nobody holds the lock, or another than before. If `forced`, ends its lease first. Fails without a lease.
    pub(super) async fn wait_until_lease_ends(&self, forced: bool) -> Result<(), Error> {
        let before = self.observer.last_holder();
        if forced {
            self.reader.end_leases(None).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lease of the lock did not end", || async move {
            let locks = self.reader.read().await?.locks;
            if locks.iter().any(LockEntry::has_no_lease) && self.observer.last_holder() == before {
                return Err(Error::replay("the lock has no lease that could end"));
            }
            Ok(locks.is_empty() || self.observer.last_holder() != before)
        })
        .await?;
        // The caption of the next step must come after this event.
        poll_until(STEP_TIMEOUT, "the end of the lease was not seen", || async move {
            Ok(self.observer.locks_satisfy(<[LockEntry]>::is_empty) || self.observer.last_holder() != before)
        })
        .await
    }

    /// Waits until the lease in the lock's row is over; the row may stay. Ends the lease first if the holder lives, whose
    /// watchdog would renew it. Fails without a lease.
    pub(super) async fn wait_until_row_lease_ends(&self) -> Result<(), Error> {
        let forced = !self.a_holder_was_killed;
        if forced {
            self.reader.end_leases(None).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lease of the lock is not over", || async move {
            let locks = self.reader.read().await?.locks;
            if locks.iter().any(LockEntry::has_no_lease) {
                return Err(Error::replay("the lock has no lease that could be over"));
            }
            Ok(locks.iter().all(|held| held.pttl == Some(0)))
        })
        .await
    }

    /// Lets the time of a lease pass: ends every lease if the pace forces it. By the clock this does nothing, because the next
    /// actor waits for longer than a lease.
    pub(super) async fn pass_lease_time(&self) -> Result<(), Error> {
        if self.options.pace.forces_timeouts() {
            self.reader.end_leases(None).await?;
        }
        Ok(())
    }

    /// Makes the clock of a Redis node jump beyond every lease. If the lab cannot, or the pace forces it, ends the lock's
    /// lease on that node instead. Returns once the lock is gone there.
    pub(super) async fn jump_clock(&self, node: usize) -> Result<(), Error> {
        let forced = self.options.pace.forces_timeouts() || Need::Clocks.what_is_missing(&self.ctx.config).is_some();
        if forced {
            self.reader.end_leases(Some(node)).await?;
        } else {
            let member = NODES[node];
            self.inject_sized(Action::Jump, member, CLOCK_JUMP).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the node still has the lock", || self.reader.is_free_on_node(node)).await
    }

    /// Waits until nobody holds the lock. A server that is being replaced does not answer, which is no error here.
    pub(super) async fn wait_until_free(&self) -> Result<(), Error> {
        poll_until(SESSION_TIMEOUT, "the lock did not become free", || async move {
            let state = self.reader.read().await;
            Ok(state.is_ok_and(|state| state.locks.is_empty()))
        })
        .await
    }

    /// Waits until the log shows a lock taken, at any time so far, with a lease of at most `max_lease_ms`.
    pub(super) async fn wait_until_lock_seen(&self, max_lease_ms: u64) -> Result<(), Error> {
        poll_until(STEP_TIMEOUT, "nobody has taken the lock", || async move {
            Ok(self.log().events_from(0).iter().any(|seen| {
                seen.event == "held" && seen.pttl.is_some_and(|pttl| (0..=max_lease_ms).contains(&pttl.cast_unsigned()))
            }))
        })
        .await
    }
}
