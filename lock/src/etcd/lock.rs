//! Go's `concurrency.Mutex`, re-entrant for an owner, with a lease of its own for each hold.
//!
//! 1. Join this process's line for the lock; its head alone has a key in etcd. So the contenders there are processes.
//! 2. [Queue](super::claim) with a lease and a key; the key that was created first has the lock.
//! 3. Each guard has a task that renews the lease every third, tells its holder of a loss, and waits for the release.
//! 4. Release: the last guard deletes the key, if it is still its own, and waits for the answer. The lease is revoked in the
//!    background.
//!
//! Next to read: `claim.rs`.

use super::{
    claim::{Claim, Place, first_kv, read_first},
    client::EtcdClient,
    gateway::{base64, bytes_of},
    options::check_lease,
};
use crate::{
    Fence, Guard, Holder, Lease, Lock, LockError, Owner, deadline,
    events::{LockEvent, Observer},
    inherent,
    keeper::{Share, run_keeper},
    local::{MutexGuard, Mutexes},
    reentry::{OwnerEntry, Reentry, entry_of},
    sure_until::SureUntil,
    time_left,
};
use parking_lot::Mutex;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The kind of lock in its events.
const KIND: &str = "EtcdLock";
/// The longest name, in bytes: etcd refuses a request of more than 1.5 MiB, and one names several keys.
const MAX_NAME_LENGTH: usize = 64 * 1024;

/// A contender for a lock in etcd; see [`EtcdClient::lock`]. Without an [`owner`](Self::owner) each acquire is its own owner,
/// and a second one waits for the first to end.
///
/// Its fencing token is the revision that created its key. Source: `concurrency.Mutex` of etcd's client for Go.
///
/// # Survives
///
/// - the death of a minority of the nodes, their leader too, and a node that stands still: renewals go to the next one in time;
/// - a holder that dies: its key goes with its lease;
/// - a caller that is dropped at any point, and a request without an answer: its lease is revoked in the background.
///
/// # What breaks it
///
/// - a holder that is paused beyond its lease and then writes, above all in a virtual machine that its host pauses, whose
///   clock does not see it: let the resource check the [`fence`](crate::Guard::fence);
/// - **a node that stood still for longer than a lease and goes on**: leases that were renewed through the others meanwhile may then
///   be gone, with their keys (seen on 3.4.23 and on 3.5.16, with three nodes). The holder learns of it at its next renewal or
///   release, and another may hold the lock before: let the resource check the fence;
/// - a key that somebody deletes by hand: the next one comes in beside the holder, which learns of it at its next renewal;
/// - a lock whose name is another's, followed by `/` and more: as in Go's client, the shorter one waits for the longer one.
///
/// A dead holder blocks the others for its lease, and for a whole lease more from each restart and each change of the leader on.
///
/// # Cost
///
/// Two requests to acquire and one to release, one after the other, and one in the background. All four wait for the disks of a
/// majority of the nodes. A lease that is renewed costs two requests every third of it, a process that waits three a second.
///
/// # Format
///
/// That of `concurrency.Mutex` and of etcd's lock service: for each contender a key `<name>/<lease in hexadecimal>` with this
/// lease; the one that was created first has the lock.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, etcd::EtcdClient};
/// # use std::time::Duration;
/// # async fn example(etcd: EtcdClient) -> Result<(), LockError> {
/// let lock = etcd.lock("/shop/door").owner(etcd.owner());
/// let outer = lock.acquire(Duration::from_secs(5)).await?;
/// let inner = lock.try_acquire().await?; // the same owner: at once
/// inner.release().await?;
/// outer.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EtcdLock {
    client: EtcdClient,
    name: Arc<str>,
    owner: Option<Owner>,
    lease: Duration,
}

impl EtcdClient {
    /// Makes a contender for the lock `name`, of 1 byte to 64 KiB: the prefix of its keys, without the `/` behind it.
    #[must_use]
    pub fn lock(&self, name: &str) -> EtcdLock {
        EtcdLock { client: self.clone(), name: name.into(), owner: None, lease: self.lease() }
    }
}

/// A hold: a claim that is the first. Dropping it revokes its lease in the background.
#[derive(Debug)]
struct Hold {
    claim: Claim,
    fence: Fence,
    /// The place at the head of this process's line; given up at a loss.
    head: Mutex<Option<MutexGuard>>,
    _owner_entry: Option<Arc<OwnerEntry<Self>>>,
}

impl EtcdLock {
    /// Takes the lock as `owner` ([`EtcdClient::owner`]), who may take it again while it holds it, in this process. The key goes
    /// with the last of its guards, in whatever order.
    #[must_use]
    pub fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Sets the lease of a new hold, instead of the client's: whole seconds from 2 s to an hour. A hold that the owner has
    /// keeps its own.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Returns the holder, in any process, as etcd showed it a moment ago: its lease in hexadecimal and, after a space, the value
    /// of its key, which Go's client leaves empty; `None` if the queue is empty.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`], and [`LockError::Invalid`] for a name that is too long or empty.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn holder(&self) -> Result<Option<Holder>, LockError> {
        let Some((key, value)) = self.first_key().await? else { return Ok(None) };
        let lease = key.get(self.name.len() + 1..).unwrap_or_default();
        let id = [lease, b" ", &value].concat();
        Ok(Some(Holder { id: String::from_utf8_lossy(&id).trim_end().to_owned(), remaining: None }))
    }

    /// Frees the lock, whoever holds it, for operators: deletes its holder's key. Returns whether it was held. The holder learns of
    /// it at its next renewal; waiters of its own process wait until then.
    ///
    /// # Errors
    ///
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    ///
    /// It may have been freed or not.
    pub async fn force_unlock(&self) -> Result<bool, LockError> {
        let Some((key, _)) = self.first_key().await? else { return Ok(false) };
        Ok(self.client.delete("kv/deleterange", json!({"key": base64(&key)})).await?)
    }

    /// Reads the first key of the queue and its value.
    async fn first_key(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>, LockError> {
        self.check_name()?;
        let read = json!({"success": [read_first(&self.name)]});
        let answer = self.client.call("kv/txn", read, self.client.timeout()).await?;
        let first = first_kv(&answer["responses"][0]);
        Ok((!first.is_null()).then(|| (bytes_of(&first["key"]), bytes_of(&first["value"]))))
    }

    fn check_name(&self) -> Result<(), LockError> {
        if (1..=MAX_NAME_LENGTH).contains(&self.name.len()) {
            return Ok(());
        }
        let beginning: String = self.name.chars().take(100).collect();
        Err(LockError::invalid(beginning, "a name has 1 byte to 64 KiB"))
    }

    /// Takes a new hold, or shares the owner's present one, unless that is lost.
    async fn take_or_share(&self, wait: Duration) -> Result<Arc<Hold>, LockError> {
        self.check_name()?;
        check_lease(&self.name, self.lease)?;
        let until = deadline(wait);
        let Some(owner) = self.owner else {
            return Ok(Arc::new(self.take(wait, until, None).await?));
        };
        let reentry = self.client.shared().of::<Reentry<Hold>>();
        let mut holds = reentry.lock_entry(&self.name, owner, until).await.ok_or_else(|| self.taken_error(wait))?;
        if let Some(hold) = holds.exclusive.upgrade().filter(|hold| !hold.claim.sure_until.is_over()) {
            if hold.claim.renew(self.client.timeout()).await? {
                return Ok(hold);
            }
            hold.mark_lost();
        }
        let hold = Arc::new(self.take(wait, until, Some(entry_of(&holds))).await?);
        holds.exclusive = Arc::downgrade(&hold);
        Ok(hold)
    }

    /// Waits in this process's line, and at its head in etcd's queue; queues again if the key is deleted or the lease has ended.
    async fn take(&self, wait: Duration, until: Instant, entry: Option<Arc<OwnerEntry<Hold>>>) -> Result<Hold, LockError> {
        let lines = self.client.shared().of::<Mutexes<Arc<str>>>();
        let head = lines.lock(&self.name, time_left(until)).await.ok_or_else(|| self.taken_error(wait))?;
        loop {
            let claim = Claim::grant(&self.client, &self.name, self.lease).await?;
            match claim.queue(until).await? {
                // A hold that may have ended is not given out.
                Place::First(fence) if !claim.sure_until.is_over() => {
                    return Ok(Hold { claim, fence, head: Mutex::new(Some(head)), _owner_entry: entry });
                }
                Place::Behind { .. } => {
                    claim.revoke().await;
                    return Err(self.taken_error(wait));
                }
                Place::First(_) | Place::Gone if Instant::now() >= until => return Err(self.taken_error(wait)),
                Place::First(_) | Place::Gone => tracing::debug!(name = &*self.name, "our key is gone: queueing again"),
            }
        }
    }

    fn taken_error(&self, wait: Duration) -> LockError {
        LockError::taken(&*self.name, wait)
    }
}

impl Lock for EtcdLock {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let client = &self.client;
        let take = client.while_open(self.take_or_share(wait));
        let hold = client.observer().report_acquire(KIND, &self.name, take).await?;
        let sure_until = hold.claim.sure_until.clone();
        let (guard, keeper) = Guard::with_sure_until(sure_until.clone(), Arc::clone(&self.name), Some(hold.fence));
        let share = HoldShare { hold, name: Arc::clone(&self.name), client: client.clone() };
        client.tasks().spawn(run_keeper(share, sure_until, keeper));
        Ok(guard)
    }
}

inherent!(EtcdLock);

impl Hold {
    /// Counts the hold as lost, and lets the next waiter of this process try. The key stays until the holder has released it, who
    /// may still be at work.
    fn mark_lost(&self) {
        self.claim.sure_until.end_now();
        self.head.lock().take();
    }
}

/// One guard's share of a hold.
struct HoldShare {
    hold: Arc<Hold>,
    name: Arc<str>,
    client: EtcdClient,
}

impl Share for HoldShare {
    fn observer(&self) -> &Observer {
        self.client.observer()
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    /// Renews the lease; completes when lease or key is gone, or the client is closed.
    async fn renew_until_lost(&self, sure_until: &SureUntil) {
        let (claim, lease) = (&self.hold.claim, Lease::Watchdog(self.hold.claim.lease));
        let late = |left| {
            let (kind, name) = (KIND, &*self.name);
            self.observer().observe(LockEvent::RenewedLate { kind, name, left });
        };
        let renew = || claim.renew(lease.renewal_timeout());
        tokio::select! {
            () = self.client.tasks().wait_until_closed() => {}
            () = lease.renew_until_gone(claim.renewed(), sure_until, late, None, renew) => {}
        }
    }

    fn on_loss(&mut self) {
        self.hold.mark_lost();
    }

    /// Deletes the key if this was the last guard; after a loss in the background, with the lease.
    async fn finish(self, lost: bool) -> Result<(), LockError> {
        match Arc::into_inner(self.hold) {
            Some(Hold { claim, fence, .. }) if !lost => match claim.release(fence).await? {
                true => Ok(()),
                false => Err(LockError::lost(&*self.name)),
            },
            _ => Ok(()),
        }
    }
}
