//! Leases and locks of a replay: waiting for their ends, ending them, and asking the servers for them.
//!
//! Next: `servers.rs`, which reads them.

use super::{
    faults::Need,
    inject::SESSION_TIMEOUT,
    options::STEP_TIMEOUT,
    play::{Play, poll_until},
    servers::{self, LockEntry},
};
use crate::{error::Error, fault::Action};
use std::time::Duration;

/// By so much a clock jumps: beyond every lease that a race has where leases end by the clock.
const CLOCK_JUMP: Duration = Duration::from_secs(90);

impl Play {
    /// The lock as its server has it, if anybody has it.
    pub(super) async fn first_lock(&self) -> Result<Option<LockEntry>, Error> {
        self.observer.refresh(&self.reader).await?;
        Ok(self.reader.read().await?.locks.into_iter().next())
    }

    /// What is left of the lock's lease, in milliseconds; none where nobody has it, or it has none.
    ///
    /// # Errors
    ///
    /// As the server's own.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn lease_left(&self) -> Result<Option<i64>, Error> {
        Ok(self.first_lock().await?.and_then(|held| held.pttl))
    }

    /// Waits until so many are in the lock's queue besides its holder, as its server has it.
    pub(super) async fn wait_until_queued(&self, waiting: usize) -> Result<(), Error> {
        let late = format!("no {waiting} are in the queue");
        poll_until(STEP_TIMEOUT, &late, || async move {
            Ok(self.first_lock().await?.map_or(0, |held| held.queue.len()) > waiting)
        })
        .await
    }

    /// Waits until the lock's lease has ended: nobody has it, or another than before. `forced`: it is ended here.
    pub(super) async fn wait_until_lease_ends(&self, forced: bool) -> Result<(), Error> {
        let before = self.observer.last_holder();
        if forced {
            self.reader.end_leases(None).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lease does not end", || async move {
            let locks = self.reader.read().await?.locks;
            if locks.iter().any(LockEntry::has_no_lease) && self.observer.last_holder() == before {
                return Err(Error::replay("the lock has no lease that could end"));
            }
            Ok(locks.is_empty() || self.observer.last_holder() != before)
        })
        .await?;
        // It is told before what comes next is.
        poll_until(
            STEP_TIMEOUT,
            "the end of the lease is not told",
            || async move {
                Ok(self.observer.locks_satisfy(<[LockEntry]>::is_empty)
                    || self.observer.last_holder() != before)
            },
        )
        .await
    }

    /// Waits until the lock's lease is over; its row may stay until another sweeps it away. Where its holder still runs, who
    /// would renew it, it is ended here.
    pub(super) async fn wait_until_row_lease_ends(&self) -> Result<(), Error> {
        let forced = !self.a_holder_was_killed;
        if forced {
            self.reader.end_leases(None).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lease is not over", || async move {
            let locks = self.reader.read().await?.locks;
            if locks.iter().any(LockEntry::has_no_lease) {
                return Err(Error::replay("the lock has no lease that could be over"));
            }
            Ok(locks.iter().all(|held| held.pttl == Some(0)))
        })
        .await
    }

    /// A lease that somebody has would be over by now. By the clock that is left to whoever comes next: it waits for longer.
    pub(super) async fn pass_lease_time(&self) -> Result<(), Error> {
        if self.options.pace.forces_timeouts() {
            self.reader.end_leases(None).await?;
        }
        Ok(())
    }

    /// The leases that are held end now.
    pub(super) async fn end_all_leases(&self) -> Result<(), Error> {
        self.record_forced(true);
        self.reader.end_leases(None).await
    }

    /// The clock of a node of Redis jumps beyond every lease; where no lab can let it, or leases are ended by order, the lock's
    /// lease is ended there.
    pub(super) async fn jump_clock(&self, node: usize) -> Result<(), Error> {
        let forced =
            self.options.pace.forces_timeouts() || Need::Clocks.missing(&self.ctx.config).is_some();
        if forced {
            self.reader.end_leases(Some(node)).await?;
        } else {
            let member = servers::node_name(node);
            let done = self
                .lab()?
                .inject_by(Action::Jump, &member, CLOCK_JUMP)
                .await;
            done.map_err(|error| Error::replay(format!("jump {member}: {error}")))?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lock does not end on the node", || {
            self.reader.is_free_on_node(node)
        })
        .await
    }

    /// Waits until nobody has the lock. A server that is about to be replaced does not answer.
    pub(super) async fn wait_until_free(&self) -> Result<(), Error> {
        poll_until(SESSION_TIMEOUT, "the lock is not free", || async move {
            let seen = self.reader.read().await;
            Ok(seen.is_ok_and(|seen| seen.locks.is_empty()))
        })
        .await
    }

    /// Waits until a lock was seen in its server.
    pub(super) async fn wait_until_locked(&self) -> Result<(), Error> {
        poll_until(STEP_TIMEOUT, "nobody has the lock", || async move {
            Ok(self.log().since(0).iter().any(|seen| seen.event == "held"))
        })
        .await
    }
}
