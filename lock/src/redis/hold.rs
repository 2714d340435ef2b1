//! What is held under a lease: one identity in Redis, shared by the guards of its owner.
//!
//! 1. A [`Claim`] says how one kind of lock renews and releases an identity. The identity is fresh for each hold, so a
//!    release may come twice, late, or after a loss, and frees this hold or nothing.
//! 2. Each guard has a lease of its own, and a [keeper](crate::keeper), which renews it every third, and at once when a
//!    connection was lost. Where Redis says that the identity is not there, all guards are told.
//! 3. Where all guards are lost, the next of this process may try.
//! 4. The last guard gives the identity back, lost or not.
//!
//! What it survives: a renewal or release that gets no answer (tried again while the lease lasts), a holder that is
//! dropped anywhere, guards that end in any order. **What breaks it**: a process that is stopped beyond its lease; a key
//! that goes before its lease ends (deleted, evicted, lost in a failover) is noticed at the next renewal.
//!
//! Next to read: `lock.rs`.

use super::{
    client::RedisClient,
    engine::{TryResult, undo},
    failure::{Failure, SERVER},
};
use crate::{
    Fence, Guard, Lease, LockError, Owner, deadline,
    keeper::{Share, keep},
    reentry::{OwnerSlot, Reentry, slot_of},
    sure_until::SureUntil,
};
use futures::{FutureExt, future};
use parking_lot::Mutex;
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How one kind of lock keeps one identity in Redis.
pub(super) trait Claim: Send + Sync + Sized + 'static {
    /// What the next of this process waits for, until the hold has ended.
    type Turn: Send + 'static;

    fn client(&self) -> &RedisClient;

    /// The lock's name, for errors.
    fn name(&self) -> &str;

    /// Lengthens the lease to at least this, from now; `false` where the identity is not there.
    fn renew(&self, lease: Lease) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Waits until as many replicas have the identity as are to have it; `false` where none are.
    fn replicated(&self, _lease: Lease) -> impl Future<Output = Result<bool, LockError>> + Send {
        future::ready(Ok(false))
    }

    /// Tells those whose turn would be next that the server is not as it should be.
    fn fail(_turn: &Self::Turn, _error: &LockError) {}

    /// Frees the identity, and nothing else; `false` where it was not there. It may be called again at any time.
    fn release(&self) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// As [`release`](Self::release), by a holder; and the turn goes on.
    fn release_or_hand_off(
        &self,
        turn: Option<Self::Turn>,
    ) -> impl Future<Output = Result<bool, Failure>> + Send {
        async move {
            let released = self.release().await;
            drop(turn);
            released
        }
    }
}

/// One identity that this process has in Redis. Dropping it gives it back in the background.
pub(super) struct Hold<C: Claim> {
    claim: Arc<C>,
    fence: Option<Fence>,
    lease: Lease,
    /// When the command was sent that began the lease.
    leased: Instant,
    /// The owner's, where it is named: as long as it holds it finds the same one again.
    slot: Option<Arc<OwnerSlot<Self>>>,
    state: Mutex<State<C::Turn>>,
    /// Redis has said that the identity is not there.
    revoked: CancellationToken,
}

#[derive(Debug)]
struct State<T> {
    /// How many guards are not lost.
    live: usize,
    /// `None` once all are lost.
    turn: Option<T>,
    released: bool,
}

impl<C: Claim> Hold<C> {
    pub(super) fn new(
        claim: Arc<C>,
        fence: Option<Fence>,
        lease: Lease,
        leased: Instant,
        turn: C::Turn,
    ) -> Self {
        let state = Mutex::new(State {
            live: 1,
            turn: Some(turn),
            released: false,
        });
        Self {
            claim,
            fence,
            lease,
            leased,
            slot: None,
            state,
            revoked: CancellationToken::new(),
        }
    }

    /// `None` where its lease has ended already: the answer came late, and the hold is given back.
    pub(super) fn in_time(self) -> Option<Self> {
        (!self.lease.is_over(self.leased)).then_some(self)
    }

    pub(super) fn into_result(self) -> TryResult<Self> {
        self.in_time()
            .map_or(TryResult::RetryWithin(None), TryResult::Acquired)
    }

    pub(super) fn claim(&self) -> &C {
        &self.claim
    }

    /// Whether a guard of it is not lost.
    pub(super) fn is_live(&self) -> bool {
        self.state.lock().live > 0
    }

    /// The hold of an owner that may come again.
    pub(super) fn named(mut self, slot: Arc<OwnerSlot<Self>>) -> Arc<Self> {
        self.slot = Some(slot);
        Arc::new(self)
    }

    /// This, once as many replicas have it as are to have it. Where they do not, it is given back, and was not had.
    async fn replicated(mut self) -> Result<Self, LockError> {
        let sent = Instant::now();
        let error = match self.claim.replicated(self.lease).await {
            Ok(false) => return Ok(self),
            Ok(true) if !self.lease.is_over(sent) => {
                self.leased = sent;
                return Ok(self);
            }
            Ok(true) => late("as many replicas had the lock"),
            Err(error) => error,
        };
        if let Some(turn) = &self.state.get_mut().turn {
            C::fail(turn, &error);
        }
        // What is not given back now is given back in the background.
        drop(self.release().await);
        Err(error)
    }

    /// Its first guard.
    pub(super) fn guard(self: Arc<Self>) -> Guard {
        let (lease, leased) = (self.lease, self.leased);
        self.guard_for(lease, leased)
    }

    /// One more guard; `None` where it is lost: a hold that may have ended is not renewed, for that would keep everybody
    /// out, its owner too.
    pub(super) async fn again(self: Arc<Self>, lease: Lease) -> Result<Option<Guard>, LockError> {
        if !self.join() {
            return Ok(None);
        }
        let (mut reentry, sent) = (PendingReentry(Some(Arc::clone(&self))), Instant::now());
        if !self.renew(lease).await? {
            return Ok(None);
        }
        if lease.is_over(sent) {
            return Err(late("it was renewed"));
        }
        reentry.0 = None;
        Ok(Some(self.guard_for(lease, sent)))
    }

    /// Lengthens the lease. Where the identity is not there, all guards become lost.
    async fn renew(&self, lease: Lease) -> Result<bool, LockError> {
        let there = self.claim.renew(lease).await?;
        if !there {
            self.revoked.cancel();
        }
        Ok(there)
    }

    fn join(&self) -> bool {
        let mut state = self.state.lock();
        let live = state.live > 0;
        state.live += usize::from(live);
        live
    }

    fn guard_for(self: Arc<Self>, lease: Lease, leased: Instant) -> Guard {
        let sure_until = SureUntil::new(lease.sure(leased));
        let (guard, keeper) = Guard::until(Arc::clone(&sure_until), self.claim.name(), self.fence);
        let hold = Arc::downgrade(&self);
        let guard = guard.renewed_by(move |lease| {
            let hold = hold.upgrade();
            async move {
                match hold {
                    Some(hold) => hold.renew(Lease::Fixed(lease)).await,
                    None => Ok(false),
                }
            }
            .boxed()
        });
        let client = self.claim.client().clone();
        client.spawn(keep(
            LeaseShare {
                hold: self,
                lease,
                leased,
            },
            sure_until,
            keeper,
        ));
        guard
    }

    /// A guard is lost. With the last one the turn goes on; the identity stays, for the holder may still be inside.
    fn lose(&self) {
        let turn = {
            let mut state = self.state.lock();
            state.live -= 1;
            if state.live == 0 {
                state.turn.take()
            } else {
                None
            }
        };
        drop(turn);
    }

    /// A guard that is not lost ends. The identity goes with the last one.
    fn leave(&self) -> bool {
        let mut state = self.state.lock();
        state.live -= 1;
        state.live == 0
    }

    async fn release(&self) -> Result<bool, Failure> {
        let turn = {
            let mut state = self.state.lock();
            state.released = true;
            state.turn.take()
        };
        let released = self.claim.release_or_hand_off(turn).await;
        if released.as_ref().is_err_and(|failure| failure.retryable) {
            undo_claim(&self.claim, self.lease, Duration::ZERO, ());
        }
        released
    }
}

/// Why no guard is given: it would be lost already.
fn late(what: &str) -> LockError {
    LockError::unavailable(
        SERVER,
        format!("its lease ended before {what}: it is given back"),
    )
}

/// A re-entry counts as a guard until Redis has answered, so that the hold is not lost meanwhile.
struct PendingReentry<C: Claim>(Option<Arc<Hold<C>>>);

impl<C: Claim> Drop for PendingReentry<C> {
    fn drop(&mut self) {
        if let Some(hold) = self.0.take() {
            hold.lose();
        }
    }
}

/// One guard's share of a hold. Where all are lost, the identity goes when the last of them is dropped.
struct LeaseShare<C: Claim> {
    hold: Arc<Hold<C>>,
    lease: Lease,
    leased: Instant,
}

impl<C: Claim> Share for LeaseShare<C> {
    fn name(&self) -> &str {
        self.hold.claim.name()
    }

    async fn lost(&self, sure_until: &SureUntil) {
        let disconnects = self.hold.claim.client().disconnects();
        let renew = || self.hold.renew(self.lease);
        tokio::select! {
            () = self.hold.revoked.cancelled() => {}
            () = self.lease.renewed(self.leased, sure_until, Some(disconnects), renew) => {}
        }
    }

    fn on_loss(&mut self) {
        self.hold.lose();
    }

    async fn finish(self, lost: bool) -> Result<(), LockError> {
        if lost || !self.hold.leave() || self.hold.release().await? {
            return Ok(());
        }
        Err(LockError::lost(self.name()))
    }
}

/// Gives an identity back in the background; where it is not there, asks for as long as `late` whether it came.
pub(super) fn undo_claim<C: Claim>(
    claim: &Arc<C>,
    lease: Lease,
    late: Duration,
    then: impl Send + 'static,
) {
    let (claim, client) = (Arc::clone(claim), claim.client().clone());
    undo(&client, lease.duration(), late, then, move || {
        let claim = Arc::clone(&claim);
        async move { claim.release().await }
    });
}

impl<C: Claim> fmt::Debug for Hold<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("name", &self.claim.name())
            .finish_non_exhaustive()
    }
}

impl<C: Claim> Drop for Hold<C> {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if !state.released {
            let turn = state.turn.take();
            undo_claim(&self.claim, self.lease, Duration::ZERO, turn);
        }
    }
}

/// What one acquire asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcquireRequest {
    pub(super) owner: Option<Owner>,
    pub(super) lease: Lease,
    pub(super) wait: Duration,
    pub(super) until: Instant,
    /// Its guard must have a fencing token.
    pub(super) fenced: bool,
}

impl AcquireRequest {
    /// An acquire that begins now.
    pub(super) fn new(
        name: &str,
        owner: Option<Owner>,
        lease: Lease,
        wait: Duration,
    ) -> Result<Self, LockError> {
        lease.check(name)?;
        Ok(Self {
            owner,
            lease,
            wait,
            until: deadline(wait),
            fenced: false,
        })
    }

    /// A guard: of what the owner holds already, or of what `first` takes, which is told what the owner has of the other
    /// kind. Readers share.
    pub(super) async fn guard<C: Claim, F>(
        &self,
        name: &str,
        held: &Reentry<Hold<C>>,
        shared: bool,
        first: impl FnOnce(Option<Arc<Hold<C>>>) -> F,
    ) -> Result<Guard, LockError>
    where
        F: Future<Output = Result<Option<Hold<C>>, LockError>>,
    {
        let taken = || LockError::taken(name, self.wait);
        let Some(owner) = self.owner else {
            let hold = first(None).await?.ok_or_else(taken)?;
            return Ok(Arc::new(hold.replicated().await?).guard());
        };
        let mut slot = held
            .enter(name, owner, self.until)
            .await
            .ok_or_else(taken)?;
        let place = slot_of(&slot);
        let (same, other) = slot.of(shared);
        if let Some(hold) = same.upgrade() {
            if self.fenced && hold.fence.is_none() && hold.is_live() {
                let rule = "its owner holds it without a token, and cannot have one before it has given it back";
                return Err(LockError::invalid(name, rule));
            }
            if let Some(guard) = hold.again(self.lease).await? {
                return Ok(guard);
            }
        }
        let other = other.upgrade().filter(|hold| hold.is_live());
        let hold = first(other).await?.ok_or_else(taken)?;
        let hold = hold.replicated().await?.named(place);
        *same = Arc::downgrade(&hold);
        Ok(hold.guard())
    }
}

impl Failure {
    /// Gives back what the command may have taken, where it may have run.
    pub(super) fn undo<C: Claim>(&self, claim: &Arc<C>, lease: Lease) {
        if self.may_have_run {
            undo_claim(claim, lease, self.max_delay(), ());
        }
    }
}
