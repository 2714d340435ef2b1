//! Redisson's lock: a hash that holds the owner, a lease that is renewed, and a channel that announces a release.
//!
//! 1. Join this process's line. Its head runs `acquire.lua`, which checks and writes the identity in one step.
//! 2. A task renews the lease every third ([`hold`](super::hold)).
//! 3. Release: `release.lua` checks the identity, deletes it and wakes the waiters. If the next waiter is in this process,
//!    `hand_off.lua` gives it the lock in one script instead.
//! 4. After [`MAX_BATCH`] hand-offs or [`MAX_BATCH_TIME`] the lock is freed for other processes. This process asks again
//!    after as many releases as there are other subscribers, or after [`YIELD_TIME`] without one.
//! 5. [`RedisFencedLock`] draws a token in the same script.
//!
//! Next to read: `acquire.rs`, then `lua/acquire.lua`.

use super::{
    acquire::AcquireRequest,
    client::RedisClient,
    engine::{SharedObject, TryResult, result_after_failure, time_until_lease_end, try_until},
    failure::{CommandFailure, to_lock_error},
    hold::{Claim, Hold},
    keys::{lock_channel, prefixed},
    scripts::{self, Script, ScriptCall, renewal_call},
};
use crate::{
    Fence, Guard, Holder, Lease, Lock, LockError, Owner, inherent,
    lease::owner_and_lease,
    local::line::{Head, LineWaiter, Turn},
    reentry::HoldKind,
    time_left,
};
use redis::AsyncCommands;
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// The most hand-offs within one process before another gets its turn: each saves a request, but the others wait longer.
pub const MAX_BATCH: u32 = 128;
/// The longest time of hand-offs within one process before another gets its turn.
pub const MAX_BATCH_TIME: Duration = Duration::from_millis(20);
/// How long a process that had its turn waits for the next release of another; without one it asks for the lock again.
pub const YIELD_TIME: Duration = Duration::from_millis(2);

/// A handle on one lock in Redis. Each acquire is its own owner, and a second one waits for the first to end; a handle
/// that is given an [owner](Self::owner) is re-entrant.
///
/// Source: Redisson's `RLock`.
///
/// # Survives
///
/// - a holder that dies: the lock is free when its lease ends;
/// - a lost message: waiters look again every [`RECHECK_INTERVAL`](super::RECHECK_INTERVAL);
/// - a caller that is dropped at any point, and a command without an answer: what it took is undone in the background.
///
/// # What breaks it
///
/// - a holder that is paused beyond its lease and then writes, above all in a virtual machine that its host pauses, whose
///   clock does not see it: use a [`RedisFencedLock`];
/// - a primary that fails before its replica has the key, unless [`wait_replicas`](super::RedisOptions::wait_replicas) is set;
/// - a key that is deleted or evicted (any `maxmemory-policy` but `noeviction` may evict it);
/// - a Redis clock that jumps ahead, or a machine that was suspended.
///
/// # Cost
///
/// One script to acquire and one to release; one for both if the next holder waits in the same process. A process that
/// subscribes without wanting the lock costs the others a pause of [`YIELD_TIME`] per turn.
///
/// # Format
///
/// Redisson's `RLock`, 3.x and 4.x: HASH `n`, channel `redisson_lock__channel:{n}`.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{Lease, LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let lease = Lease::Watchdog(Duration::from_secs(10));
/// let lock = redis.lock("lock").owner(redis.owner()).lease(lease);
/// let outer = lock.acquire(Duration::from_secs(5)).await?;
/// let inner = lock.try_acquire().await?; // the same owner: at once
/// inner.release().await?;
/// outer.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisLock(LockHandle);

/// A handle on one lock in Redis whose guards have a fencing token: one for each hold, which its owner's guards share.
///
/// The holder shows its token with every write ([`Guard::fence`]), and the resource refuses a lower one than it has seen. An
/// owner that holds the [`RedisLock`] of this name without a token gets [`LockError::Invalid`].
///
/// Source: Redisson's `RFencedLock`.
///
/// # Survives
///
/// What a [`RedisLock`] survives; and, if the resource checks the token, a holder that is paused beyond its lease.
///
/// # What breaks it
///
/// A resource that does not check the token. A Redis that loses the counter hands out tokens that the resource refuses,
/// until [`lift`](Self::lift) raises it above what the resource has seen. Nothing removes the counter but
/// [`forget`](Self::forget): if it expired, tokens would start again from a lower number.
///
/// In a cluster nobody gets it while its slot is moved key by key, since the counter and the lock are two keys: a waiter waits
/// as long as it was told to, [`try_acquire`](Self::try_acquire) says what goes on, and a holder keeps it, renews and releases.
///
/// # Cost
///
/// What a [`RedisLock`] costs: the token comes with the same script.
///
/// # Format
///
/// Redisson's `RFencedLock`, 3.20 and later: a `RedisLock` and the counter `redisson_lock_token:{n}`.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let guard = redis.fenced_lock("fencedLock").acquire(Duration::from_secs(5)).await?;
/// println!("UPDATE … WHERE fence <= {:?}", guard.fence());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisFencedLock(LockHandle);

/// What a [`RedisLock`] and a [`RedisFencedLock`] consist of: the lock, and for which owner and on which terms it is taken.
#[derive(Debug, Clone)]
struct LockHandle {
    client: RedisClient,
    lock: Arc<SharedLock>,
    owner: Option<Owner>,
    terms: AcquireTerms,
}

/// The lease of one acquire, and whether it draws a fencing token.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcquireTerms {
    lease: Lease,
    fenced: bool,
}

/// The head of a plain or fenced lock's line.
type LockHead = Arc<Head<Hold<LockClaim>, AcquireTerms>>;

/// What all handles of one lock share in this process: its line, its channel, and how long it yields to other processes.
#[derive(Debug)]
pub(super) struct SharedLock {
    name: Arc<str>,
    object: SharedObject<Hold<LockClaim>, AcquireTerms>,
    /// How many messages this process waits for before it asks again; 0 or less: none.
    messages_to_await: AtomicI64,
}

/// One identity in the lock's hash, a fresh owner for each try, and the series of hand-offs that it is in.
#[derive(Debug)]
pub(super) struct LockClaim {
    client: RedisClient,
    lock: Arc<SharedLock>,
    id: Owner,
    batch: Batch,
}

/// A series of hand-offs within one process: since when, and how many so far.
#[derive(Debug, Clone, Copy)]
struct Batch {
    since: Instant,
    length: u32,
}

impl RedisClient {
    /// Makes a handle on the lock `name`.
    #[must_use]
    pub fn lock(&self, name: &str) -> RedisLock {
        RedisLock(LockHandle::new(self, name, false))
    }

    /// Makes a handle on the lock `name` whose guards have fencing tokens.
    #[must_use]
    pub fn fenced_lock(&self, name: &str) -> RedisFencedLock {
        RedisFencedLock(LockHandle::new(self, name, true))
    }

    /// Returns how many names of plain and fenced locks this client uses: those that are held, waited for, or have a handle.
    /// An unused name takes no memory.
    #[must_use]
    pub fn locks_in_use(&self) -> usize {
        self.names_in_use::<SharedLock>()
    }
}

/// The public methods of the plain and the fenced lock.
macro_rules! handle {
    ($handle:ident) => {
        impl $handle {
            /// Returns the holder and the rest of its lease; `None` if the lock is free.
            ///
            /// # Errors
            ///
            /// [`LockError::Unavailable`], [`LockError::Refused`].
            ///
            /// # Cancel safety
            ///
            /// Safe.
            pub async fn holder(&self) -> Result<Option<Holder>, LockError> {
                Ok(self.0.client.holders(&self.0.lock.name).await?.pop())
            }

            /// Frees the lock, whoever holds it, for operators; wakes the first waiter of each process and returns whether
            /// it was held. Its holder is told at its next renewal, and one with a fixed lease when it releases or extends
            /// it; waiters of the holder's own process may have to wait until then.
            ///
            /// Source: `forceUnlock` of Redisson.
            ///
            /// # Errors
            ///
            /// As [`holder`](Self::holder).
            ///
            /// # Cancel safety
            ///
            /// It may have been freed or not.
            pub async fn force_unlock(&self) -> Result<bool, LockError> {
                let LockHandle { client, lock, .. } = &self.0;
                let keys = [&*lock.name, lock.object.channel()];
                let script = client.script(&scripts::FORCE_UNLOCK).call(keys);
                Ok(client.run_script(&script.arg(0)).await?)
            }
        }

        impl Lock for $handle {
            fn name(&self) -> &str {
                &self.0.lock.name
            }

            async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
                self.0.acquire(wait).await
            }
        }
    };
}

handle!(RedisLock);
handle!(RedisFencedLock);
inherent!(RedisLock, RedisFencedLock);
owner_and_lease! {
    RedisLock: 0.owner, 0.terms.lease;
    RedisFencedLock: 0.owner, 0.terms.lease;
}

impl RedisFencedLock {
    /// Raises the counter of tokens to at least `seen`, so that the next token is above it: for a resource that has
    /// seen more than the counter says, because Redis has lost it.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if Redis is down or did not answer; it may have been raised. [`LockError::Refused`];
    /// [`LockError::Invalid`] for 2^63 - 1 and more: Redis could not count further.
    ///
    /// # Cancel safety
    ///
    /// It may have been raised or not; calling it again is safe.
    pub async fn lift(&self, seen: Fence) -> Result<(), LockError> {
        if seen.0 >= i64::MAX.unsigned_abs() {
            let rule = "its tokens must stay below 2^63 - 1";
            return Err(LockError::invalid(&*self.0.lock.name, rule));
        }
        let token = self.0.lock.token_key();
        let lift = scripts::LIFT_TOKEN.call([&*token]).arg(seen.0);
        Ok(self.0.client.run_script::<i64>(&lift).await.map(drop)?)
    }

    /// Deletes the counter of tokens, for a resource that is gone: nothing else removes it. If the resource still
    /// exists, or comes back with what it has seen, the next tokens are refused until [`lift`](Self::lift).
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if Redis is down or did not answer; it may have been deleted. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may have been deleted or not; calling it again is safe.
    pub async fn forget(&self) -> Result<(), LockError> {
        let mut redis = self.0.client.connection();
        redis.del(self.0.lock.token_key()).await.map_err(to_lock_error)
    }
}

impl LockHandle {
    /// Makes a handle without an owner, with the client's prefix and lease.
    fn new(client: &RedisClient, name: &str, fenced: bool) -> Self {
        let name = client.key(name);
        let lock = client.shared(&name, |registration| SharedLock {
            object: SharedObject::new(client, &name, lock_channel(&name), registration),
            messages_to_await: AtomicI64::new(0),
            name: name.clone(),
        });
        Self { client: client.clone(), lock, owner: None, terms: AcquireTerms { lease: client.lease(), fenced } }
    }

    /// Joins the hold that this handle's owner has, once Redis has renewed its lease for this guard; without such a hold, or without
    /// an owner, waits for a hold of its own.
    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (name, AcquireTerms { lease, fenced }) = (&*self.lock.name, self.terms);
        let kind = if fenced { "RedisFencedLock" } else { "RedisLock" };
        let request = AcquireRequest { fenced, ..AcquireRequest::new(&self.client, kind, name, (self.owner, lease, wait))? };
        let take_first_hold = |_| self.take_first_hold(request.until);
        request.acquire_guard(&self.client, name, HoldKind::Exclusive, take_first_hold).await
    }

    /// Waits in this process's line, and contends in Redis at its head; `None` if the wait ended first. A hold that was handed
    /// off too late is dropped, and the caller joins the line again.
    async fn take_first_hold(&self, until: Instant) -> Result<Option<Hold<LockClaim>>, LockError> {
        let object = &self.lock.object;
        loop {
            match object.line.join(self.terms, time_left(until)).await {
                Some(Turn::Handed(hold)) => {
                    if let Some(hold) = hold.into_unexpired() {
                        return Ok(Some(hold));
                    }
                }
                Some(Turn::Contend(head)) => {
                    let (client, subscription) = (&self.client, Some(&object.subscription));
                    let attempt = || self.clone().attempt(Arc::clone(&head));
                    return try_until(client, subscription, &object.outage, until, attempt).await;
                }
                Some(Turn::Failed(error)) => return Err(error),
                None => return object.outage.fail_if_unavailable().map(|()| None),
            }
        }
    }

    /// Tries once, by `acquire.lua`; after a batch of hand-offs it first leaves the lock to other processes ([`YIELD_TIME`]).
    /// What a command without an answer may have taken is undone in the background.
    async fn attempt(self, head: LockHead) -> Result<TryResult<Hold<LockClaim>>, LockError> {
        self.lock.yield_to_other_processes().await;
        let (id, lease_start, AcquireTerms { lease, fenced }) = (self.client.owner(), Instant::now(), self.terms);
        let batch = Batch { since: lease_start, length: 0 };
        let claim = Arc::new(LockClaim { client: self.client, lock: self.lock, id, batch });
        let script = claim.lock.script_call(&scripts::ACQUIRE, fenced);
        let script = script.arg(lease.millis()).arg(id);
        match claim.client.run_script::<(bool, i64)>(&script).await {
            Ok((true, token)) => Ok(Hold::new(claim, fence_of_token(token), lease, lease_start, head).into_try_result()),
            Ok((false, millis)) => Ok(TryResult::RetryWithin(time_until_lease_end(millis))),
            Err(failure) => {
                failure.undo_claim_if_run(&claim, lease);
                result_after_failure(&claim.client, Some(&*head), failure)
            }
        }
    }
}

/// The token in a script's answer; tokens begin at 1, and 0 means that none was drawn.
fn fence_of_token(token: i64) -> Option<Fence> {
    u64::try_from(token).ok().filter(|n| *n > 0).map(Fence)
}

impl Claim for LockClaim {
    type Head = LockHead;

    fn client(&self) -> &RedisClient {
        &self.client
    }

    fn name(&self) -> &Arc<str> {
        &self.lock.name
    }

    async fn renew(&self, lease: Lease, limit: Option<Duration>) -> Result<bool, CommandFailure> {
        let renewal = renewal_call(&self.lock.name, lease, self.id);
        self.client.run_script_within(&renewal, limit).await
    }

    async fn wait_for_replicas(&self, lease: Lease) -> Result<bool, LockError> {
        let renewal = || renewal_call(&self.lock.name, lease, self.id);
        self.client.wait_for_replicas(&self.lock.name, renewal).await
    }

    fn fail_waiters(head: &LockHead, error: &LockError) {
        head.fail_waiters(error);
    }

    /// Runs `release.lua`; `false` if the identity was gone.
    async fn release(&self) -> Result<bool, CommandFailure> {
        Ok(self.run_release().await?.is_some())
    }

    /// Hands the lock to the next waiter of this process while the batch lasts. After that, or without a waiter, it is
    /// freed; if this process has waiters and others subscribe, it then yields to them.
    async fn release_or_hand_off(&self, head: Option<LockHead>) -> Result<bool, CommandFailure> {
        let may_hand_off = self.batch.length < MAX_BATCH && self.batch.since.elapsed() < MAX_BATCH_TIME;
        let next = head.as_ref().filter(|_| may_hand_off).and_then(|head| head.take_next());
        match (head, next) {
            (Some(head), Some(next)) => {
                match self.hand_off(head, next).await {
                    // A hand-off may be refused for the next owner's sake, or for that of its key of the tokens; the lock can
                    // still be freed.
                    Err(failure) if !failure.retryable || failure.is_by_moving_slot() => self.release().await,
                    handed => handed,
                }
            }
            (head, _) => {
                let told = self.run_release().await?;
                let others = told.unwrap_or(0) - i64::from(self.lock.object.subscription.has_begun());
                let must_yield = others > 0 && head.as_ref().is_some_and(|head| head.has_waiters());
                // The first message is our own, or says that the subscription has begun.
                self.lock.messages_to_await.store(if must_yield { others + 1 } else { 0 }, Ordering::Relaxed);
                Ok(told.is_some())
            }
        }
    }
}

impl SharedLock {
    /// After a batch of hand-offs, waits until the other processes have had their turns; without others there is nothing to
    /// wait for.
    async fn yield_to_other_processes(&self) {
        loop {
            let messages = self.messages_to_await.fetch_sub(1, Ordering::Relaxed);
            if messages <= 0 {
                return;
            }
            let message = self.object.subscription.wait_for_message();
            if timeout(YIELD_TIME, message).await.is_err() {
                return;
            }
        }
    }

    /// The key of the counter of tokens.
    fn token_key(&self) -> String {
        prefixed("redisson_lock_token", &self.name)
    }

    /// Begins a call of this script, with the key of the counter if it shall draw a token.
    fn script_call(&self, script: &Script, fenced: bool) -> ScriptCall {
        let token = fenced.then(|| self.token_key());
        script.call([&*self.name].into_iter().chain(token.as_deref()))
    }
}

impl LockClaim {
    /// Runs `release.lua`, which deletes this identity and publishes on the channel only if it was there. Returns how many
    /// subscribers were told, or `None` if the identity was gone.
    async fn run_release(&self) -> Result<Option<i64>, CommandFailure> {
        let script = self.client.script(&scripts::RELEASE);
        let script = script.call([&*self.lock.name]).arg(self.id);
        let script = script.arg(self.lock.object.channel());
        self.client.run_script(&script).await
    }

    /// Runs `hand_off.lua`, which gives the lock to the next waiter; `false` if the identity was gone, and the waiter then
    /// contends. If that waiter has gone by then, its hold is dropped, which frees the lock. After a failure the waiter
    /// contends if the client waits out an outage, and otherwise gets the error.
    async fn hand_off(&self, head: LockHead, next: LineWaiter<Hold<Self>, AcquireTerms>) -> Result<bool, CommandFailure> {
        let (lease_start, id, AcquireTerms { lease, fenced }) = (Instant::now(), self.client.owner(), *next.request());
        let batch = Batch { length: self.batch.length + 1, ..self.batch };
        let claim = Arc::new(Self { client: self.client.clone(), lock: Arc::clone(&self.lock), id, batch });
        let script = self.lock.script_call(&scripts::HAND_OFF, fenced);
        let script = script.arg(lease.millis()).arg(self.id).arg(id);
        match self.client.run_script::<i64>(&script).await {
            Ok(token) if token >= 0 => {
                let hold = Hold::new(claim, fence_of_token(token), lease, lease_start, head);
                drop(next.give_turn(Turn::Handed(hold)));
                Ok(true)
            }
            Ok(_) => {
                drop(next.give_turn(Turn::Contend(head)));
                Ok(false)
            }
            Err(failure) => {
                failure.undo_claim_if_run(&claim, lease);
                if self.client.keeps_waiting_after(&failure.error) {
                    drop(next.give_turn(Turn::Contend(head)));
                } else {
                    drop(next.give_turn(Turn::Failed(failure.error.clone())));
                    if failure.affects_all_waiters() {
                        head.fail_waiters(&failure.error);
                    }
                }
                Err(failure)
            }
        }
    }
}
