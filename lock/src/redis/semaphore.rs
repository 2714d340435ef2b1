//! Redisson's semaphores: a number of permits, and a channel that announces returned ones.
//!
//! 1. [`try_set_permits`](RedisSemaphore::try_set_permits) sets the permits once.
//! 2. Join this process's line; its head takes permits by one script, or waits for the channel or half a second
//!    ([`engine`](super::engine)). The script returns how many are left, so the waiters that fit follow at once.
//! 3. The script also writes when each permit ends (`{n}:timeout`), as Redisson's `RPermitExpirableSemaphore` does. They are a
//!    [hold](super::hold) like that of a lock. Whoever asks for permits first takes back those whose lease has ended.
//! 4. [Without a lease](RedisSemaphore::without_lease) it writes a claim instead (`{n}:claims`: owner → permits), and a release
//!    removes it. A repeated release therefore counts once, and permits taken before the semaphore was reset do not count.
//!
//! Next to read: `engine.rs`, then `lua/semaphore_acquire.lua`.

use super::{
    client::RedisClient,
    engine::{
        HeadOfLine, MIN_UNDO_TIME, SharedObject, TryResult, result_after_failure, time_until_lease_end, undo_in_background,
    },
    failure::CommandFailure,
    hold::{Claim, Hold},
    keys::{prefixed, suffixed},
    scripts::{self, NotifyingScript, ScriptCall},
};
use crate::{
    Guard, Lease, LockError, MAX_DURATION, Owner, WithError, deadline,
    events::Observer,
    keeper::{Share, run_keeper},
    run_and_release,
    sure_until::SureUntil,
};
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::time::Instant;

/// The kind of lock in its events.
const KIND: &str = "RedisSemaphore";

/// How long the tombstone of an abandoned owner is kept: longer than a command can be on its way.
const TOMBSTONE_TTL: Duration = Duration::from_secs(60);

/// The most permits with a lease in one acquire; more are refused, because a script that writes more entries would keep Redis
/// busy.
const MAX_LEASED_PERMITS: u32 = 1000;

/// The semaphore's waiters in this process, each with the permits that it asks for.
type SharedSemaphore = SharedObject<(), u32>;

/// A handle on one semaphore in Redis. Cloning it is cheap.
///
/// Source: Redisson's `RPermitExpirableSemaphore`; [without a lease](Self::without_lease), its `RSemaphore`.
///
/// # Survives
///
/// A lost message, a dropped caller, a command without an answer, a semaphore that is deleted under its holders; a holder that
/// dies, unless it is [without a lease](Self::without_lease).
///
/// # What breaks it
///
/// - A holder that is paused beyond its lease: others have its permits. It is told, as the holder of a lock is.
/// - **[Without a lease](Self::without_lease), a holder that crashes: it keeps its permits for ever** (Redisson's issue 2045).
///   `{n}:claims` shows what was lost, and only deleting the semaphore brings it back.
/// - Of handles with and without a lease on one semaphore, only those with one take expired permits back.
/// - A Java process writes no claims, so a permit without a lease that it releases twice counts twice. Java's expirable
///   semaphore uses its own clock: if that is ahead, it takes back permits that are held.
///
/// # Cost
///
/// One script to acquire, one to release, and one for each renewal of a lease. Of the waiters of a process only the first asks.
///
/// # Format
///
/// Redisson's `RPermitExpirableSemaphore`, 3.x and 4.x: STRING `n`, ZSET `{n}:timeout` with an entry for each permit, channel
/// `redisson_sc:{n}`. Without a lease, that of `RSemaphore`, 3.x and 4.x: the same STRING and channel; ours alone: HASH
/// `{n}:claims`.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let room = redis.semaphore("semaphore");
/// room.try_set_permits(3).await?;
/// let two = room.acquire(2, Duration::from_secs(5)).await?;
/// two.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisSemaphore {
    client: RedisClient,
    name: Arc<str>,
    object: Arc<SharedSemaphore>,
    /// The permits to create the semaphore with if it is missing; 0: do not create it.
    initial: u32,
    /// How long its permits last; `None`: until they are released.
    lease: Option<Lease>,
}

/// The permits of one acquire, held until it is released or dropped. Dropping it releases them in the background.
///
/// ```no_run
/// # use oversell_lock::LockError;
/// # use std::time::Duration;
/// # async fn example(permit: oversell_lock::redis::Permit) -> Result<(), LockError> {
/// println!("{} permits are held, surely for {:?}", permit.permits(), permit.sure_for());
/// tokio::select! {
///     () = permit.lost() => { /* others may have them soon: stop here */ }
///     () = async { /* the work */ } => {}
/// }
/// permit.release().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the permits are given back as soon as this is dropped"]
pub struct Permit {
    guard: Guard,
    permits: u32,
}

/// The share of permits without a lease: the owner whose claim in `{n}:claims` counts them.
struct ClaimedPermits {
    semaphore: RedisSemaphore,
    owner: Owner,
}

/// The claim of permits with a lease: the name of the entry that each has in `{n}:timeout`.
struct LeasedPermits {
    semaphore: RedisSemaphore,
    ids: Vec<String>,
}

impl RedisClient {
    /// Makes a handle on the semaphore `name`, whose permits have the client's lease, as its locks: those of a holder that has
    /// died come back.
    ///
    /// **Until 0.2 they had none**, and came back only by their release. A Java process that uses the name as `RSemaphore`
    /// needs [`without_lease`](RedisSemaphore::without_lease).
    #[must_use]
    pub fn semaphore(&self, name: &str) -> RedisSemaphore {
        let name = self.key(name);
        RedisSemaphore {
            client: self.clone(),
            object: self
                .shared(&name, |registration| SharedSemaphore::new(self, &name, prefixed("redisson_sc", &name), registration)),
            name,
            initial: 0,
            lease: Some(self.lease()),
        }
    }
}

impl RedisSemaphore {
    /// Returns the name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets each try create the semaphore with `permits` if it is missing, so that waiters go on after somebody has deleted it;
    /// 0, the default: does not.
    #[must_use]
    pub fn initially(self, permits: u32) -> Self {
        Self { initial: permits, ..self }
    }

    /// Gives its permits this lease, of 1 ms to ten years, instead of the client's; a [`Lease::Watchdog`] is renewed while the
    /// permit is held. Those of a holder that dies come back when it ends.
    ///
    /// ```no_run
    /// # use oversell_lock::{Lease, LockError, redis::RedisClient};
    /// # use std::time::Duration;
    /// # async fn example(redis: RedisClient) -> Result<(), LockError> {
    /// let lease = Lease::Watchdog(Duration::from_secs(30));
    /// let room = redis.semaphore("room").initially(3).lease(lease);
    /// let permit = room.acquire(1, Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lease(self, lease: Lease) -> Self {
        let lease = Some(lease);
        Self { lease, ..self }
    }

    /// Lets its permits last until they are released, in the format of Redisson's `RSemaphore`: for a semaphore that such a Java
    /// process shares. Every process must do so.
    ///
    /// **A holder that dies keeps its permits for ever**, the next run of a program that has crashed finds them gone, and only
    /// deleting the semaphore brings them back.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, redis::RedisClient};
    /// # use std::time::Duration;
    /// # async fn example(redis: RedisClient) -> Result<(), LockError> {
    /// // RSemaphore semaphore = redisson.getSemaphore("semaphore");
    /// let shared_with_java = redis.semaphore("semaphore").without_lease();
    /// let permit = shared_with_java.acquire(1, Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without_lease(self) -> Self {
        Self { lease: None, ..self }
    }

    /// Creates the semaphore with `permits` permits and wakes waiters; `false` if it exists, even with none free. Permits of a
    /// deleted semaphore of this name are void.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`]: it may be set or not; trying again is safe. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// It may be set or not.
    pub async fn try_set_permits(&self, permits: u32) -> Result<bool, LockError> {
        self.client.check_name(&self.name)?;
        let (claims, timeouts) = (self.claims_key(), self.timeouts_key());
        let keys = [&*self.name, &claims, self.object.channel(), &timeouts];
        let script = self.client.script(&scripts::SEMAPHORE_SET).call(keys);
        Ok(self.client.run_script(&script.arg(permits)).await?)
    }

    /// Returns how many permits are free now; 0 if the semaphore is not set. A handle with a lease counts those whose lease
    /// has ended.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn available_permits(&self) -> Result<i64, LockError> {
        if self.lease.is_none() {
            return self.client.read_number(&self.name).await;
        }
        let script = scripts::PERMITS_FREE.call([&*self.name, &self.timeouts_key()]);
        Ok(self.client.run_script(&script).await?)
    }

    /// Takes `permits` (at least 1) at once, waiting for them at most `wait`. A semaphore that is not set has none
    /// ([`initially`](Self::initially) sets it).
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] if they were not free for all of `wait`, [`LockError::Unavailable`] if Redis is down or did not
    /// answer, [`LockError::Refused`] if it answered with an error, [`LockError::Invalid`] for no permits, more than 1,000
    /// with a lease, or a lease out of its range.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind: what an unanswered command may have taken is released in the background.
    pub async fn acquire(&self, permits: u32, wait: Duration) -> Result<Permit, LockError> {
        self.client.check_name(&self.name)?;
        if permits == 0 {
            return Err(LockError::invalid(&*self.name, "permits: must be at least 1"));
        }
        if let Some(lease) = self.lease {
            lease.check(&self.name)?;
            if permits > MAX_LEASED_PERMITS {
                let rule = "permits: at most 1,000 at once with a lease, an entry for each";
                return Err(LockError::invalid(&*self.name, rule));
            }
        }
        let take = async {
            let until = deadline(wait);
            let attempt = |head| self.clone().attempt(permits, head);
            let acquired = self.object.wait_and_try(&self.client, permits, wait, until, attempt);
            acquired.await?.ok_or_else(|| LockError::taken(&*self.name, wait))
        };
        let take = self.client.while_open(take);
        self.client.observer().report_acquire(KIND, &self.name, take).await
    }

    /// Takes `permits` if they are free now, ahead of any waiter.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, permits: u32) -> Result<Permit, LockError> {
        self.acquire(permits, Duration::ZERO).await
    }

    /// Takes `permits`, runs `work` while they are held, and releases them, as [`Lock::with`](crate::Lock::with).
    ///
    /// ```no_run
    /// # use oversell_lock::{WithError, redis::RedisClient};
    /// # use std::{io, time::Duration};
    /// # async fn resize() -> io::Result<()> { Ok(()) }
    /// # async fn example(redis: RedisClient) -> Result<(), WithError<io::Error>> {
    /// let resizers = redis.semaphore("resizers").initially(3);
    /// resizers.with(1, Duration::from_secs(5), || resize()).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Lock::with`](crate::Lock::with).
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::with`](crate::Lock::with).
    pub async fn with<T, E, F>(&self, permits: u32, wait: Duration, work: impl FnOnce() -> F + Send) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>> + Send,
    {
        let permit = self.acquire(permits, wait).await.map_err(WithError::NotAcquired)?;
        run_and_release(permit.guard, work()).await
    }

    /// Tries once, with or without a lease. If the caller has gone, the permit is dropped and so released.
    async fn attempt(self, permits: u32, head: HeadOfLine<u32>) -> Result<TryResult<Permit>, LockError> {
        match self.lease {
            Some(lease) => self.attempt_leased(lease, permits, head).await,
            None => self.attempt_claimed(permits, head).await,
        }
    }

    /// Takes permits with a lease by `permits_take.lua`, and invites the next waiters if there are permits left for them.
    async fn attempt_leased(self, lease: Lease, permits: u32, head: HeadOfLine<u32>) -> Result<TryResult<Permit>, LockError> {
        let (client, owner, lease_start) = (self.client.clone(), self.client.owner(), Instant::now());
        let ids = (0..permits).map(|n| format!("{owner}:{n}")).collect();
        let initial = self.initial;
        let claim = Arc::new(LeasedPermits { semaphore: self, ids });
        let claims = claim.semaphore.claims_key();
        let script = claim.semaphore.script_call(&scripts::PERMITS_TAKE, Some(&claims));
        let script = script.arg(lease.millis()).arg(initial).args(&claim.ids);
        match client.run_script::<(i64, i64)>(&script).await {
            Ok((free, _)) if free >= 0 => {
                let Some(hold) = Hold::new(claim, None, lease, lease_start, ()).into_unexpired() else {
                    return Ok(TryResult::RetryWithin(None));
                };
                invite_waiters(head, u32::try_from(free).unwrap_or(u32::MAX));
                let guard = Arc::new(hold).first_guard(KIND);
                Ok(TryResult::Acquired(Permit { guard, permits }))
            }
            Ok((_, millis)) => Ok(TryResult::RetryWithin(time_until_lease_end(millis))),
            Err(failure) => {
                failure.undo_claim_if_run(&claim, lease);
                result_after_failure(&client, head.as_deref(), failure)
            }
        }
    }

    /// Takes permits without a lease by `semaphore_acquire.lua`, which writes who has them, and invites the next waiters if
    /// there are permits left for them.
    async fn attempt_claimed(self, permits: u32, head: HeadOfLine<u32>) -> Result<TryResult<Permit>, LockError> {
        let owner = self.client.owner();
        let (claims, tombstone) = (self.claims_key(), self.tombstone_key(owner));
        let (channel, timeouts) = (self.object.channel(), self.timeouts_key());
        let script = self.client.script(&scripts::SEMAPHORE_ACQUIRE);
        let script = script.call([&*self.name, &claims, &tombstone, channel, &timeouts]);
        let script = script.arg(permits).arg(owner).arg(self.initial);
        match self.client.run_script::<Option<u32>>(&script).await {
            Ok(Some(free)) => {
                invite_waiters(head, free);
                let (guard, keeper) = Guard::new(Arc::clone(&self.name), None);
                // There is no lease to end.
                let sure_until = SureUntil::new(Instant::now() + MAX_DURATION);
                let client = self.client.clone();
                let share = ClaimedPermits { semaphore: self, owner };
                client.spawn(run_keeper(share, sure_until, keeper));
                Ok(TryResult::Acquired(Permit { guard, permits }))
            }
            Ok(None) => Ok(TryResult::RetryWithin(None)),
            Err(failure) => {
                if failure.may_have_run {
                    self.undo_permits(owner, TOMBSTONE_TTL);
                }
                result_after_failure(&self.client, head.as_deref(), failure)
            }
        }
    }

    /// Releases the owner's claim in the background. If there is none, a tombstone keeps out the owner's command if it arrives
    /// later; it stays for `tombstone_ttl`, and zero makes none.
    fn undo_permits(&self, owner: Owner, tombstone_ttl: Duration) {
        let semaphore = self.clone();
        undo_in_background(&self.client, MIN_UNDO_TIME, Duration::ZERO, (), move || {
            let semaphore = semaphore.clone();
            async move { semaphore.release_permits(owner, tombstone_ttl).await }
        });
    }

    /// Runs `semaphore_release.lua`; `false` if the owner had no claim, or the semaphore was deleted.
    async fn release_permits(&self, owner: Owner, tombstone_ttl: Duration) -> Result<bool, CommandFailure> {
        let (claims, tombstone) = (self.claims_key(), self.tombstone_key(owner));
        let script = self.client.script(&scripts::SEMAPHORE_RELEASE);
        let script = script.call([&*self.name, &claims, &tombstone, self.object.channel()]);
        let script = script.arg(owner).arg(tombstone_ttl.as_millis());
        self.client.run_script(&script).await
    }

    /// A call of a script for permits with a lease, with their keys and perhaps an extra one.
    fn script_call(&self, script: &NotifyingScript, extra_key: Option<&str>) -> ScriptCall {
        let timeouts = self.timeouts_key();
        let keys = [&*self.name, &timeouts, self.object.channel()].into_iter();
        self.client.script(script).call(keys.chain(extra_key))
    }

    /// The key of the set that says when each permit ends, as in Redisson.
    fn timeouts_key(&self) -> String {
        suffixed(&self.name, "timeout")
    }

    /// The key of the hash that says how many permits without a lease each owner has.
    fn claims_key(&self) -> String {
        suffixed(&self.name, "claims")
    }

    /// The key of the tombstone of an owner whose command is undone.
    fn tombstone_key(&self, owner: Owner) -> String {
        suffixed(&self.name, &format!("gone:{owner}"))
    }
}

impl Permit {
    /// Returns the number of permits.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Returns the semaphore's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// Completes once the permits are no longer surely held, as [`Guard::lost`] does. Without a lease that is so only after
    /// `close` of the client, or if its runtime ends: a semaphore that is deleted is noticed at the release.
    ///
    /// # Cancel safety
    ///
    /// Safe: it may be dropped and called again at any time.
    pub async fn lost(&self) {
        self.guard.lost().await;
    }

    /// Returns whether the permits are lost, by the clock too: [`Guard::is_lost`].
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// Returns how long the permits are surely held if Redis is not heard from again: [`Guard::sure_for`]. `None` without a
    /// lease.
    #[must_use]
    pub fn sure_for(&self) -> Option<Duration> {
        self.guard.sure_for()
    }

    /// Makes the lease last at least `lease` from now: [`Guard::extend`].
    ///
    /// # Errors
    ///
    /// As [`Guard::extend`]; [`LockError::Invalid`] without a lease.
    ///
    /// # Cancel safety
    ///
    /// It may be extended or not; calling it again is safe.
    pub async fn extend(&self, lease: Duration) -> Result<(), LockError> {
        self.guard.extend(lease).await
    }

    /// Runs `work` while the permits are held: [`Guard::run`].
    ///
    /// # Errors
    ///
    /// As [`Guard::run`].
    ///
    /// # Cancel safety
    ///
    /// As the work's; the permits stay held.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LockError> {
        self.guard.run(work).await
    }

    /// Releases the permits and waits for Redis's answer.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease of one ended, or the semaphore was deleted in the meantime.
    /// [`LockError::Unavailable`] if Redis did not answer: the release is retried in the background. [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe: it continues in the background.
    pub async fn release(self) -> Result<(), LockError> {
        self.guard.release().await
    }
}

/// Lets the first waiters ask at once, as long as the free permits suffice for all of them.
fn invite_waiters(head: HeadOfLine<u32>, mut free: u32) {
    if let Some(head) = head {
        head.invite_while(|request| {
            let fits = *request <= free;
            free -= if fits { *request } else { 0 };
            fits
        });
    }
}

impl Share for ClaimedPermits {
    fn observer(&self) -> &Observer {
        self.semaphore.client.observer()
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    /// Renews nothing; completes when the client is closed.
    async fn renew_until_lost(&self, _: &SureUntil) {
        self.semaphore.client.wait_until_closed().await;
    }

    /// Releases the owner's claim; after a loss or a temporary failure in the background.
    async fn finish(self, lost: bool) -> Result<(), LockError> {
        let Self { semaphore, owner } = self;
        if lost {
            semaphore.undo_permits(owner, Duration::ZERO);
            return Ok(());
        }
        match semaphore.release_permits(owner, Duration::ZERO).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(LockError::lost(&*semaphore.name)),
            Err(failure) => {
                if failure.retryable {
                    semaphore.undo_permits(owner, Duration::ZERO);
                }
                Err(failure.error)
            }
        }
    }
}

impl Claim for LeasedPermits {
    type Head = ();

    fn client(&self) -> &RedisClient {
        &self.semaphore.client
    }

    fn name(&self) -> &Arc<str> {
        &self.semaphore.name
    }

    /// Runs `permits_renew.lua`, for all permits or none.
    async fn renew(&self, lease: Lease, limit: Option<Duration>) -> Result<bool, CommandFailure> {
        let script = scripts::PERMITS_RENEW.call([&*self.semaphore.timeouts_key()]);
        let script = script.arg(lease.millis()).args(&self.ids);
        self.client().run_script_within(&script, limit).await
    }

    /// Runs `permits_release.lua`; `false` if the lease of one had ended (the others are released), or the semaphore was deleted.
    async fn release(&self) -> Result<bool, CommandFailure> {
        let script = self.semaphore.script_call(&scripts::PERMITS_RELEASE, None);
        self.client().run_script(&script.args(&self.ids)).await
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("name", &self.name())
            .field("permits", &self.permits)
            .field("lost", &self.is_lost())
            .finish()
    }
}
