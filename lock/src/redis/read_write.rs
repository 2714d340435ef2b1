//! Redisson's read-write lock: many readers together, or one writer alone.
//!
//! 1. Readers and writers share one line of this process; only its head asks Redis. When a reader acquires, the readers
//!    directly behind it ask at once. A reader that finds the line empty first asks without joining it.
//! 2. One script takes a hold, or returns how long the leases in its way still run.
//! 3. Each hold has a lease of its own ([`hold`](super::hold)); the lock lasts as long as the longest.
//! 4. A named owner may re-enter read in read, write in write and read in write. Write in read is refused at once: two
//!    readers that tried it would wait for each other.
//!
//! Next to read: `engine.rs`, then `lua/rw_read.lua`.

use super::{
    acquire::AcquireRequest,
    client::RedisClient,
    engine::{HeadOfLine, SharedObject, TryResult, result_after_failure, run_to_end, time_until_lease_end},
    failure::CommandFailure,
    hold::{Claim, Hold},
    keys::{in_braces, prefixed, suffixed},
    scripts::{self, ScriptCall},
};
use crate::{Guard, Holder, Lease, Lock, LockError, Owner, inherent, lease::owner_and_lease, reentry::HoldKind};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// A handle on one read-write lock in Redis. Cloning it is cheap.
///
/// Source: Redisson's `RReadWriteLock`.
///
/// # Survives
///
/// A holder that dies (its own hold ends, the others' do not), a lost message, a dropped caller, a command without an answer.
///
/// # What breaks it
///
/// - what breaks a [`RedisLock`](super::RedisLock);
/// - readers of other processes that never pause keep a writer out for ever: the format has no place for waiters. Within one
///   process, readers that come after a writer wait behind it;
/// - a Java reader's watchdog sets the lease of *every* reader to its own. A renewed lease of ours is therefore at most
///   [`RedisOptions::java_watchdog`](super::RedisOptions::java_watchdog), which must be right; a longer fixed lease ends early.
///
/// # Cost
///
/// One script to acquire, one to release, and one for each renewal of each hold. Of the waiters of a process only the first
/// asks, and the readers behind it once it is in.
///
/// # Format
///
/// Redisson's `RReadWriteLock`, 3.x and 4.x: HASH `n` (`mode`, `<owner>`, `<owner>:write`), a string per read hold
/// `{n}:<owner>:rwlock_timeout:1`, channel `redisson_rwlock:{n}` (`0`: the last reader left, `1`: the writer did).
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let book = redis.rw_lock("rwLock");
/// let one = book.read().acquire(Duration::from_secs(5)).await?;
/// let other = book.read().acquire(Duration::from_secs(5)).await?;
/// one.release().await?;
/// other.release().await?;
/// book.write().acquire(Duration::from_secs(5)).await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisRwLock {
    client: RedisClient,
    name: Arc<str>,
    object: Arc<SharedRwLock>,
}

/// The lock's waiters in this process, each with the half that it asks for.
type SharedRwLock = SharedObject<(), RwHalf>;

/// The half that any number of readers hold together while there is no writer. A renewed lease is at most
/// [`RedisOptions::java_watchdog`](super::RedisOptions::java_watchdog).
///
/// # Survives
///
/// What its [`RedisRwLock`] survives.
///
/// # What breaks it
///
/// What breaks its [`RedisRwLock`]; above all a Java reader with a shorter watchdog.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let reading = redis.rw_lock("rwLock").read().acquire(Duration::from_secs(5)).await?;
/// reading.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisReadLock(HalfHandle);

/// The half that one owner holds alone. An owner may read while it writes; to write while it reads is [`LockError::Invalid`].
///
/// # Survives
///
/// What its [`RedisRwLock`] survives.
///
/// # What breaks it
///
/// What breaks its [`RedisRwLock`]; above all readers of other processes that never pause.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::RedisClient};
/// # use std::time::Duration;
/// # async fn example(redis: RedisClient) -> Result<(), LockError> {
/// let one = redis.owner();
/// let book = redis.rw_lock("rwLock");
/// let writing = book.write().owner(one).acquire(Duration::from_secs(5)).await?;
/// let reading = book.read().owner(one).try_acquire().await?; // who writes may read
/// writing.release().await?; // and goes on reading
/// reading.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisWriteLock(HalfHandle);

/// What a [`RedisReadLock`] and a [`RedisWriteLock`] consist of: the lock, the half, and the owner and the lease with which it
/// is taken.
#[derive(Debug, Clone)]
struct HalfHandle {
    lock: RedisRwLock,
    half: RwHalf,
    owner: Option<Owner>,
    lease: Lease,
}

/// The half of the lock that a handle takes: the readers' or the writer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RwHalf {
    Read,
    Write,
}

impl RwHalf {
    fn lock_type(self) -> &'static str {
        match self {
            Self::Read => "RedisReadLock",
            Self::Write => "RedisWriteLock",
        }
    }

    fn hold_kind(self) -> HoldKind {
        match self {
            Self::Read => HoldKind::Shared,
            Self::Write => HoldKind::Exclusive,
        }
    }
}

/// One hold's identity in the lock's hash, and the half that it holds.
#[derive(Debug)]
pub(super) struct RwClaim {
    lock: RedisRwLock,
    half: RwHalf,
    id: Owner,
}

impl RedisClient {
    /// Makes a handle on the read-write lock `name`, with the client's lease.
    #[must_use]
    pub fn rw_lock(&self, name: &str) -> RedisRwLock {
        let name = self.key(name);
        let object =
            self.shared(&name, |registration| SharedRwLock::new(self, &name, prefixed("redisson_rwlock", &name), registration));
        RedisRwLock { client: self.clone(), name, object }
    }
}

impl RedisRwLock {
    /// Returns the name, with the prefix: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its read half.
    #[must_use]
    pub fn read(&self) -> RedisReadLock {
        RedisReadLock(self.half_handle(RwHalf::Read))
    }

    /// Returns its write half.
    #[must_use]
    pub fn write(&self) -> RedisWriteLock {
        RedisWriteLock(self.half_handle(RwHalf::Write))
    }

    /// Makes a handle on this half, without an owner and with the client's lease.
    fn half_handle(&self, half: RwHalf) -> HalfHandle {
        HalfHandle { lock: self.clone(), half, owner: None, lease: self.client.lease() }
    }
}

macro_rules! half_lock {
    ($half:ident) => {
        impl Lock for $half {
            fn name(&self) -> &str {
                &self.0.lock.name
            }

            async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
                self.0.acquire(wait).await
            }
        }
    };
}

half_lock!(RedisReadLock);
half_lock!(RedisWriteLock);
inherent!(RedisReadLock, RedisWriteLock);
owner_and_lease! {
    RedisReadLock: 0.owner, 0.lease;
    RedisWriteLock: 0.owner, 0.lease;
}

impl RedisReadLock {
    /// Returns the readers, each with the rest of its lease.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn holders(&self) -> Result<Vec<Holder>, LockError> {
        self.0.holders().await
    }

    /// Frees the lock of all readers, for operators; wakes the first waiter of each process. Returns `false`, and does
    /// nothing, if it is free or a writer has it. Its holders are told at their next renewals, and those with a fixed lease
    /// when they release or extend it.
    ///
    /// Source: `forceUnlock` of Redisson.
    ///
    /// # Errors
    ///
    /// As [`holders`](Self::holders).
    ///
    /// # Cancel safety
    ///
    /// It may have been freed or not.
    pub async fn force_unlock(&self) -> Result<bool, LockError> {
        self.0.force_unlock().await
    }
}

impl RedisWriteLock {
    /// Returns the writer and the rest of its lease; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn holder(&self) -> Result<Option<Holder>, LockError> {
        Ok(self.0.holders().await?.pop())
    }

    /// Frees the lock of its writer, and of the writer's own reads, for operators; wakes the first waiter of each process.
    /// Returns `false`, and does nothing, if it is free or readers have it. Its holder is told at its next renewal, and one
    /// with a fixed lease when it releases or extends it.
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
        self.0.force_unlock().await
    }
}

impl HalfHandle {
    /// Shares the hold that its owner has, or takes a first one; [`LockError::Invalid`] for a write while the owner reads.
    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (name, client) = (&*self.lock.name, &self.lock.client);
        let request = AcquireRequest {
            lease: self.effective_lease(),
            ..AcquireRequest::new(client, self.half.lock_type(), name, (self.owner, self.lease, wait))?
        };
        let request = &request;
        let take_first_hold = |other: Option<Arc<Hold<RwClaim>>>| async move {
            if self.half == RwHalf::Write && other.is_some() {
                let rule = "its owner reads, and cannot write before it has given the read lock back";
                return Err(LockError::invalid(name, rule));
            }
            self.take_first_hold(request, other.map(|writer| writer.claim().id)).await
        };
        request.acquire_guard(client, name, self.half.hold_kind(), take_first_hold).await
    }

    /// Returns the holders of this half alone.
    async fn holders(&self) -> Result<Vec<Holder>, LockError> {
        let mut holders = self.lock.client.holders(&self.lock.name).await?;
        holders.retain(|holder| holder.id.ends_with(WRITE_FIELD_SUFFIX) == (self.half == RwHalf::Write));
        Ok(holders)
    }

    /// Runs `force_unlock.lua`, which frees the lock if this half is held; returns whether it was.
    async fn force_unlock(&self) -> Result<bool, LockError> {
        let RedisRwLock { client, name, .. } = &self.lock;
        let script = client.script(&scripts::FORCE_UNLOCK);
        let script = script.call([&**name, self.lock.object.channel()]);
        let script = match self.half {
            RwHalf::Read => script.arg(0).arg("read"),
            RwHalf::Write => script.arg(1).arg("write"),
        };
        Ok(client.run_script(&script).await?)
    }

    /// Takes a first hold; `None` if the wait ended first. `write_hold` is the owner's write hold, if it has one: it then reads
    /// without joining the line.
    async fn take_first_hold(
        &self,
        request: &AcquireRequest,
        write_hold: Option<Owner>,
    ) -> Result<Option<Hold<RwClaim>>, LockError> {
        let (client, object) = (&self.lock.client, &self.lock.object);
        let lease = request.lease;
        let skips_line = write_hold.is_some() || (self.half == RwHalf::Read && object.line.is_empty());
        if skips_line
            && !request.wait.is_zero()
            && let TryResult::Acquired(hold) = run_to_end(client, self.clone().attempt(lease, write_hold, None)).await?
        {
            return Ok(Some(hold));
        }
        let attempt = |head| self.clone().attempt(lease, write_hold, head);
        object.wait_and_try(client, self.half, request.wait, request.until, attempt).await
    }

    /// Returns the lease to use: a renewed one of a reader is cut to `RedisOptions::java_watchdog`.
    fn effective_lease(&self) -> Lease {
        match self.lease {
            Lease::Watchdog(lease) if self.half == RwHalf::Read => {
                Lease::Watchdog(lease.min(self.lock.client.state().options.java_watchdog))
            }
            lease => lease,
        }
    }

    /// Tries once, by `rw_read.lua` or `rw_write.lua`; a reader that gets in invites the readers behind it. What a command
    /// without an answer may have taken is undone in the background.
    async fn attempt(
        self,
        lease: Lease,
        write_hold: Option<Owner>,
        head: HeadOfLine<RwHalf>,
    ) -> Result<TryResult<Hold<RwClaim>>, LockError> {
        let (half, id, lease_start) = (self.half, self.lock.client.owner(), Instant::now());
        let claim = Arc::new(RwClaim { lock: self.lock, half, id });
        let name = &*claim.lock.name;
        let script = match half {
            RwHalf::Read => {
                let writer = write_hold.map(|writer| hash_field(RwHalf::Write, writer));
                let script = scripts::RW_READ.call([name, &claim.lease_key()]);
                let script = script.arg(lease.millis()).arg(claim.hash_field());
                script.arg(writer.unwrap_or_default())
            }
            RwHalf::Write => {
                let script = scripts::RW_WRITE.call([name]);
                script.arg(lease.millis()).arg(claim.hash_field())
            }
        };
        match claim.lock.client.run_script::<Option<i64>>(&script).await {
            Ok(None) => {
                if let (RwHalf::Read, Some(head)) = (half, head) {
                    head.invite_while(|next| *next == RwHalf::Read);
                }
                Ok(Hold::new(claim, None, lease, lease_start, ()).into_try_result())
            }
            Ok(Some(millis)) => Ok(TryResult::RetryWithin(time_until_lease_end(millis))),
            Err(failure) => {
                failure.undo_claim_if_run(&claim, lease);
                result_after_failure(&claim.lock.client, head.as_deref(), failure)
            }
        }
    }
}

/// The suffix of a write hold's field in the lock's hash.
const WRITE_FIELD_SUFFIX: &str = ":write";

/// The field of a hold in the lock's hash.
fn hash_field(half: RwHalf, id: Owner) -> String {
    if half == RwHalf::Read { id.to_string() } else { format!("{id}{WRITE_FIELD_SUFFIX}") }
}

impl RwClaim {
    fn hash_field(&self) -> String {
        hash_field(self.half, self.id)
    }

    /// A call of `rw_renew.lua`.
    fn renewal_call(&self, lease: Lease) -> ScriptCall {
        let lease_key = (self.half == RwHalf::Read).then(|| self.lease_key());
        let keys = [&*self.lock.name].into_iter().chain(lease_key.as_deref());
        let script = scripts::RW_RENEW.call(keys);
        script.arg(lease.millis()).arg(self.hash_field())
    }

    /// The key of the string that has the lease of a read hold.
    fn lease_key(&self) -> String {
        suffixed(&self.lock.name, &format!("{}:rwlock_timeout:1", self.id))
    }
}

impl Claim for RwClaim {
    type Head = ();

    fn client(&self) -> &RedisClient {
        &self.lock.client
    }

    fn name(&self) -> &Arc<str> {
        &self.lock.name
    }

    async fn renew(&self, lease: Lease, limit: Option<Duration>) -> Result<bool, CommandFailure> {
        let client = &self.lock.client;
        client.run_script_within(&self.renewal_call(lease), limit).await
    }

    async fn wait_for_replicas(&self, lease: Lease) -> Result<bool, LockError> {
        let RedisRwLock { client, name, .. } = &self.lock;
        client.wait_for_replicas(name, || self.renewal_call(lease)).await
    }

    /// Runs `rw_release.lua`.
    async fn release(&self) -> Result<bool, CommandFailure> {
        let RedisRwLock { client, name, .. } = &self.lock;
        let lease_key = (self.half == RwHalf::Read).then(|| self.lease_key());
        let keys = [&**name, self.lock.object.channel()].into_iter();
        let script = client.script(&scripts::RW_RELEASE);
        let script = script.call(keys.chain(lease_key.as_deref()));
        client.run_script(&script.arg(self.hash_field()).arg(in_braces(name))).await
    }
}
