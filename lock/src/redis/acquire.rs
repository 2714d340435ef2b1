//! One acquire of a lock: a guard of the hold that its owner has, or of a new one.
//!
//! 1. Without an owner, each acquire takes a hold of its own.
//! 2. An owner's acquires come one after the other. One that finds a live hold of its kind renews it for one more guard.
//! 3. A new hold counts once enough replicas have it (`replicas.rs`); if too few have, it is released.
//! 4. The observer is told how the acquire ended.
//!
//! Next to read: `engine.rs`, then `hold.rs`.

use super::{
    client::RedisClient,
    engine::pause_or_return_error,
    hold::{Claim, Hold},
};
use crate::{
    Guard, Lease, LockError, Owner, deadline,
    reentry::{HoldKind, entry_of},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::Instant;

/// What one acquire asks for: a kind of lock, its owner (`None`: a fresh one), its lease, and how long it waits and until when.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcquireRequest {
    pub(super) kind: &'static str,
    pub(super) owner: Option<Owner>,
    pub(super) lease: Lease,
    pub(super) wait: Duration,
    pub(super) until: Instant,
    /// The guard must have a fencing token.
    pub(super) fenced: bool,
}

impl AcquireRequest {
    /// The terms of an acquire whose wait begins now; [`LockError::Invalid`] for an empty name, and for a lease out of range.
    pub(super) fn new(
        client: &RedisClient,
        kind: &'static str,
        name: &str,
        (owner, lease, wait): (Option<Owner>, Lease, Duration),
    ) -> Result<Self, LockError> {
        client.check_name(name)?;
        lease.check(name)?;
        Ok(Self { kind, owner, lease, wait, until: deadline(wait), fenced: false })
    }

    /// Returns a guard of the owner's existing hold, or of a new hold that `first_hold` takes, and tells the observer how that
    /// ended; fails once the client is being closed. `first_hold` gets the owner's live hold of the other kind (read or write),
    /// if there is one.
    ///
    /// # Cancel safety
    ///
    /// As that of `first_hold`.
    pub(super) async fn acquire_guard<C: Claim, F>(
        &self,
        client: &RedisClient,
        name: &str,
        hold_kind: HoldKind,
        first_hold: impl Fn(Option<Arc<Hold<C>>>) -> F,
    ) -> Result<Guard, LockError>
    where
        F: Future<Output = Result<Option<Hold<C>>, LockError>>,
    {
        let take = self.join_or_take(client, name, hold_kind, first_hold);
        client.observer().report_acquire(self.kind, name, client.while_open(take)).await
    }

    /// Joins the owner's hold, or takes a first one that enough replicas have, and waits out an outage if the client does;
    /// [`LockError::Taken`] if the wait ended first, also behind another task of the owner; [`LockError::Invalid`] if a token
    /// is needed and the owner's hold has none.
    async fn join_or_take<C: Claim, F>(
        &self,
        client: &RedisClient,
        name: &str,
        hold_kind: HoldKind,
        first_hold: impl Fn(Option<Arc<Hold<C>>>) -> F,
    ) -> Result<Guard, LockError>
    where
        F: Future<Output = Result<Option<Hold<C>>, LockError>>,
    {
        let taken = || LockError::taken(name, self.wait);
        let Some(owner) = self.owner else {
            loop {
                let hold = first_hold(None).await?.ok_or_else(taken)?;
                match hold.wait_until_replicated().await {
                    Ok(hold) => return Ok(Arc::new(hold).first_guard(self.kind)),
                    Err(error) => pause_or_return_error(client, error, self.until).await?,
                }
            }
        };
        let reentry = client.reentry::<Hold<C>>();
        let mut holds = reentry.lock_entry(name, owner, self.until).await.ok_or_else(taken)?;
        let entry = entry_of(&holds);
        let (same, other) = holds.same_and_other_kind(hold_kind);
        loop {
            if let Some(hold) = same.upgrade() {
                if self.fenced && hold.fence.is_none() && hold.is_live() {
                    let rule = "its owner holds it without a token, and cannot have one before it has given it back";
                    return Err(LockError::invalid(name, rule));
                }
                match hold.reenter(self.lease, self.kind).await {
                    Ok(Some(guard)) => return Ok(guard),
                    Ok(None) => {}
                    Err(error) => {
                        pause_or_return_error(client, error, self.until).await?;
                        continue;
                    }
                }
            }
            let other = other.upgrade().filter(|hold| hold.is_live());
            let hold = first_hold(other).await?.ok_or_else(taken)?;
            match hold.wait_until_replicated().await {
                Ok(hold) => {
                    let hold = hold.with_owner_entry(entry);
                    *same = Arc::downgrade(&hold);
                    return Ok(hold.first_guard(self.kind));
                }
                Err(error) => pause_or_return_error(client, error, self.until).await?,
            }
        }
    }
}
