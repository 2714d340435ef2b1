//! A hold under a lease: one identity in Redis, shared by the guards of its owner.
//!
//! 1. A [`Claim`] says how one kind of lock renews and releases an identity. Each hold has a fresh one, so a release
//!    may come twice, late, or after a loss, and frees this hold or nothing.
//! 2. Each guard has a lease of its own and a [keeper](crate::keeper), which renews it every third, and at once after a
//!    disconnect. If Redis says that the identity is gone, all guards are told.
//! 3. A plain, fenced or Redlock hold keeps the head of its line. Once all its guards are lost, the next waiter may try.
//! 4. The last guard releases the identity, lost or not.
//!
//! A renewal without an answer is retried while the lease lasts, a release for ten minutes at least. A renewal without an
//! answer for a third of the lease is repeated by a new connection, as it may be: it only means this identity. A key that
//! goes before its lease ends (deleted, evicted, lost in a fail-over) is noticed at the next renewal.
//!
//! Next to read: `keeper.rs`.

use super::{
    client::RedisClient,
    engine::{TryResult, undo_in_background},
    failure::{CommandFailure, SERVER},
};
use crate::{
    Fence, Guard, Lease, LockError,
    events::{LockEvent, Observer},
    guard::ExtendableLease,
    keeper::{Share, run_keeper},
    reentry::OwnerEntry,
    sure_until::SureUntil,
};
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use parking_lot::Mutex;
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::{sync::SetOnce, time::Instant};

/// One identity in Redis, and how its kind of lock renews and releases it; each kind of lock has a type that implements it.
pub(super) trait Claim: Send + Sync + Sized + 'static {
    /// What keeps the line of this process: dropping it lets the next waiter ask Redis. `()` if a hold does not keep it.
    type Head: Send + 'static;

    fn client(&self) -> &RedisClient;

    /// The lock's name, for errors.
    fn name(&self) -> &Arc<str>;

    /// Extends the lease to at least this, from now; `false` if the identity is gone. After `limit` without an answer the
    /// connection counts as broken.
    fn renew(&self, lease: Lease, limit: Option<Duration>) -> impl Future<Output = Result<bool, CommandFailure>> + Send;

    /// Renews the lease and waits until enough replicas have the identity: then `true`. `false` at once, without a command, if
    /// `RedisOptions::wait_replicas` asks for none; an error if too few have it in time, or the identity is gone (`replicas.rs`).
    fn wait_for_replicas(&self, _lease: Lease) -> impl Future<Output = Result<bool, LockError>> + Send {
        future::ready(Ok(false))
    }

    /// Gives the waiters behind the head the error of an unavailable server; does nothing by default.
    fn fail_waiters(_head: &Self::Head, _error: &LockError) {}

    /// Frees the identity, and nothing else; `false` if it was gone. Repeating it is safe.
    fn release(&self) -> impl Future<Output = Result<bool, CommandFailure>> + Send;

    /// Releases the identity and lets the next waiter of this process try; a plain or fenced lock may be handed to
    /// that waiter instead. `false` if the identity was gone.
    fn release_or_hand_off(&self, head: Option<Self::Head>) -> impl Future<Output = Result<bool, CommandFailure>> + Send {
        async move {
            let released = self.release().await;
            drop(head);
            released
        }
    }
}

/// One identity that this process has in Redis. Dropping it releases it in the background.
pub(super) struct Hold<C: Claim> {
    claim: Arc<C>,
    pub(super) fence: Option<Fence>,
    lease: Lease,
    /// When the command that began the lease was sent.
    lease_start: Instant,
    /// The entry of a named owner, which keeps this hold for re-entry.
    entry: Option<Arc<OwnerEntry<Self>>>,
    state: Mutex<HoldState<C::Head>>,
    /// Set once Redis said that the identity is gone.
    revoked: SetOnce<()>,
}

/// How many guards of a hold are neither lost nor released, the head of its line, and whether its release was begun.
#[derive(Debug)]
struct HoldState<T> {
    live: usize,
    /// `None` once all guards are lost or the release was begun.
    head: Option<T>,
    released: bool,
}

impl<C: Claim> Hold<C> {
    /// Makes a hold that counts one guard, its first. `head` is dropped when the next waiter may try.
    pub(super) fn new(claim: Arc<C>, fence: Option<Fence>, lease: Lease, lease_start: Instant, head: C::Head) -> Self {
        let state = Mutex::new(HoldState { live: 1, head: Some(head), released: false });
        Self { claim, fence, lease, lease_start, entry: None, state, revoked: SetOnce::new() }
    }

    /// Returns the hold; `None` if its lease ended before the answer came: it is then released in the background.
    pub(super) fn into_unexpired(self) -> Option<Self> {
        (!self.lease.is_unsure(self.lease_start)).then_some(self)
    }

    /// `Acquired`; or `RetryWithin` if the lease ended before the answer came, and the hold is released.
    pub(super) fn into_try_result(self) -> TryResult<Self> {
        self.into_unexpired().map_or(TryResult::RetryWithin(None), TryResult::Acquired)
    }

    pub(super) fn claim(&self) -> &C {
        &self.claim
    }

    /// Whether it has a guard that is neither lost nor released.
    pub(super) fn is_live(&self) -> bool {
        self.state.lock().live > 0
    }

    /// Makes it the hold of a named owner, whose entry it keeps alive.
    pub(super) fn with_owner_entry(mut self, entry: Arc<OwnerEntry<Self>>) -> Arc<Self> {
        self.entry = Some(entry);
        Arc::new(self)
    }

    /// Returns the hold once enough replicas have it, at once if none are asked for; otherwise releases it and returns the
    /// error, which the waiters behind it get too unless the client waits out an outage.
    pub(super) async fn wait_until_replicated(mut self) -> Result<Self, LockError> {
        let sent = Instant::now();
        let error = match self.claim.wait_for_replicas(self.lease).await {
            Ok(false) => return Ok(self),
            Ok(true) if !self.lease.is_unsure(sent) => {
                self.lease_start = sent;
                return Ok(self);
            }
            Ok(true) => lease_ended_error("as many replicas had the lock"),
            Err(error) => error,
        };
        if !self.claim.client().keeps_waiting_after(&error)
            && let Some(head) = &self.state.get_mut().head
        {
            C::fail_waiters(head, &error);
        }
        // What this cannot release is released in the background.
        drop(self.release().await);
        Err(error)
    }

    /// Makes its first guard, of this kind of lock, and spawns its keeper.
    pub(super) fn first_guard(self: Arc<Self>, kind: &'static str) -> Guard {
        let (lease, lease_start) = (self.lease, self.lease_start);
        self.guard_for(kind, lease, lease_start)
    }

    /// Renews the lease and makes one more guard; `None` if the hold is lost, an error if the renewal failed or came too late.
    /// A hold that may have ended is not renewed: that would keep everybody out, its owner included.
    pub(super) async fn reenter(self: Arc<Self>, lease: Lease, kind: &'static str) -> Result<Option<Guard>, LockError> {
        if !self.try_count_guard() {
            return Ok(None);
        }
        let (mut reentry, sent) = (PendingReentry(Some(Arc::clone(&self))), Instant::now());
        if !self.renew(lease, None).await? {
            return Ok(None);
        }
        if lease.is_unsure(sent) {
            return Err(lease_ended_error("it was renewed"));
        }
        reentry.0 = None;
        Ok(Some(self.guard_for(kind, lease, sent)))
    }

    /// Extends the lease to at least this, from now; `false` if the identity is gone, and all guards are then lost.
    async fn renew(&self, lease: Lease, limit: Option<Duration>) -> Result<bool, LockError> {
        let there = self.claim.renew(lease, limit).await?;
        if !there {
            self.revoked.set(()).ok();
        }
        Ok(there)
    }

    /// Counts one more guard if the hold is live; returns whether it did.
    fn try_count_guard(&self) -> bool {
        let mut state = self.state.lock();
        let live = state.live > 0;
        state.live += usize::from(live);
        live
    }

    /// Makes a guard that is already counted, and spawns its keeper.
    fn guard_for(self: Arc<Self>, kind: &'static str, lease: Lease, lease_start: Instant) -> Guard {
        let sure_until = SureUntil::new(lease.sure_end(lease_start));
        let name = Arc::clone(self.claim.name());
        let (guard, keeper) = Guard::with_sure_until(sure_until.clone(), name, self.fence);
        let hold = Arc::downgrade(&self);
        let guard = guard.with_lease(hold);
        let client = self.claim.client().clone();
        client.spawn(run_keeper(LeaseShare { hold: self, kind, lease, lease_start }, sure_until, keeper));
        guard
    }

    /// Counts a lost guard, and after the last one lets the next waiter of this process try. The identity stays, because the
    /// holder may still be at work.
    fn count_lost_guard(&self) {
        let head = {
            let mut state = self.state.lock();
            state.live -= 1;
            if state.live == 0 { state.head.take() } else { None }
        };
        drop(head);
    }

    /// Counts a released guard; returns whether it was the last.
    fn count_released_guard_and_check_if_last(&self) -> bool {
        let mut state = self.state.lock();
        state.live -= 1;
        state.live == 0
    }

    /// Releases the identity or hands it off; `false` if it was gone. After a temporary failure the release is repeated in the
    /// background.
    async fn release(&self) -> Result<bool, CommandFailure> {
        let head = {
            let mut state = self.state.lock();
            state.released = true;
            state.head.take()
        };
        let released = self.claim.release_or_hand_off(head).await;
        if released.as_ref().is_err_and(|failure| failure.retryable) {
            undo_claim(&self.claim, self.lease, Duration::ZERO, ());
        }
        released
    }
}

impl<C: Claim> ExtendableLease for Hold<C> {
    fn extend(self: Arc<Self>, lease: Duration) -> BoxFuture<'static, Result<bool, LockError>> {
        async move { self.renew(Lease::Fixed(lease), None).await }.boxed()
    }
}

/// The error of a hold whose lease ended before `what` had happened.
fn lease_ended_error(what: &str) -> LockError {
    LockError::unavailable(SERVER, format!("its lease ended before {what}: it is given back"))
}

/// A re-entry that Redis has not answered yet. It counts as a guard, so that the hold is not lost meanwhile.
struct PendingReentry<C: Claim>(Option<Arc<Hold<C>>>);

impl<C: Claim> Drop for PendingReentry<C> {
    /// Counts the re-entry as a lost guard, unless it has become a guard.
    fn drop(&mut self) {
        if let Some(hold) = self.0.take() {
            hold.count_lost_guard();
        }
    }
}

/// One guard's share of a hold. If all shares are lost, the last one to be dropped releases the identity.
struct LeaseShare<C: Claim> {
    hold: Arc<Hold<C>>,
    kind: &'static str,
    lease: Lease,
    lease_start: Instant,
}

impl<C: Claim> Share for LeaseShare<C> {
    fn observer(&self) -> &Observer {
        self.hold.claim.client().observer()
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    /// Renews the lease; completes when the identity is gone or the client is closed.
    async fn renew_until_lost(&self, sure_until: &SureUntil) {
        let disconnects = self.hold.claim.client().disconnects();
        let limit = Some(self.lease.renewal_timeout());
        let renew = || self.hold.renew(self.lease, limit);
        let late = |left| {
            let (kind, name) = (self.kind, self.hold.claim.name());
            self.observer().observe(LockEvent::RenewedLate { kind, name, left });
        };
        let renewed = self.lease.renew_until_gone(self.lease_start, sure_until, late, Some(disconnects), renew);
        tokio::select! {
            &() = self.hold.revoked.wait() => {}
            () = self.hold.claim.client().wait_until_closed() => {}
            () = renewed => {}
        }
    }

    /// Counts this guard as lost; the last one lets the next waiter of this process try.
    fn on_loss(&mut self) {
        self.hold.count_lost_guard();
    }

    /// Releases the hold if this was its last guard; [`LockError::Lost`] if it was gone.
    async fn finish(self, lost: bool) -> Result<(), LockError> {
        // `Drop for Hold` releases a lost hold, with the last share.
        if lost || !self.hold.count_released_guard_and_check_if_last() || self.hold.release().await? {
            return Ok(());
        }
        Err(LockError::lost(&**self.hold.claim.name()))
    }
}

/// Spawns a task that releases an identity, and repeats that until Redis has answered, as [`undo_in_background`] does.
pub(super) fn undo_claim<C: Claim>(
    claim: &Arc<C>,
    lease: Lease,
    may_arrive_within: Duration,
    after_first_try: impl Send + 'static,
) {
    let (claim, client) = (Arc::clone(claim), claim.client().clone());
    let release = move || {
        let claim = Arc::clone(&claim);
        async move { claim.release().await }
    };
    undo_in_background(&client, lease.duration(), may_arrive_within, after_first_try, release);
}

impl<C: Claim> fmt::Debug for Hold<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("name", &self.claim.name()).finish_non_exhaustive()
    }
}

impl<C: Claim> Drop for Hold<C> {
    /// Releases the identity in the background, unless a release was begun. The next waiter of this process may try after the
    /// first attempt.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if !state.released {
            let head = state.head.take();
            undo_claim(&self.claim, self.lease, Duration::ZERO, head);
        }
    }
}

impl CommandFailure {
    /// Releases in the background what the failed command may have taken, if it may have run.
    pub(super) fn undo_claim_if_run<C: Claim>(&self, claim: &Arc<C>, lease: Lease) {
        if self.may_have_run {
            undo_claim(claim, lease, self.max_delay(), ());
        }
    }
}
