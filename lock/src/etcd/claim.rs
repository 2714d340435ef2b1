//! A contender in etcd: a lease of its own, and a key with that lease in the lock's queue.
//!
//! 1. Grant the lease, under a number of our own: so it can be revoked although the answer never came.
//! 2. In one transaction, create the key and read the first key of the queue. If that is ours, it is our turn.
//! 3. Otherwise find the key before ours, and wait until it is deleted: by a watch, and by a look every [`RECHECK_INTERVAL`] for
//!    a watch that is broken or whose node stands still. Then look again: the one before us may have given up while others
//!    are before it.
//! 4. A waiter renews its lease every third, and keeps its place through an election as long as the lease is sure.
//! 5. Whoever gives up revokes the lease, which deletes the key; a caller that is dropped does so in the background.
//!
//! The fencing token is the revision that created our own key. That of an answer's header is larger for whoever waited, and may
//! be larger than the next holder's token.
//!
//! Source: `concurrency/mutex.go` of etcd's client for Go, whose keys these are.

use super::{
    SERVER,
    client::EtcdClient,
    gateway::{CallFailure, FAILED_PRECONDITION, NOT_FOUND, base64, bytes_of, number_of},
};
use crate::{
    Fence, LockError, Owner,
    sure_until::{SureUntil, sure_part},
    time_left,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How often a waiter looks whether it is its turn, whatever it hears from its watch.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The pause of a waiter before it asks again, after no node answered.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long the answer to a waiter's last look may take after its wait is over.
const LAST_LOOK_TIMEOUT: Duration = Duration::from_millis(500);
/// The first pause before a revocation is repeated; each further one is twice as long.
const FIRST_REVOKE_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause before a revocation is repeated.
const MAX_REVOKE_PAUSE: Duration = Duration::from_secs(5);
/// After so many leases a revocation is given up: the server, were it there, would have ended the lease.
const REVOKED_FOR_LEASES: u32 = 3;

/// A lease, and its key in the queue of one lock. Dropping it revokes the lease in the background.
#[derive(Debug)]
pub(super) struct Claim {
    client: EtcdClient,
    name: Arc<str>,
    /// The whole time of its lease.
    pub(super) lease: Duration,
    lease_id: i64,
    key: Vec<u8>,
    owner: Owner,
    /// Until when the lease surely lasts.
    pub(super) sure_until: SureUntil,
    /// When the request that last renewed the lease was sent.
    renewed: Mutex<Instant>,
    /// Whether there is nothing to revoke.
    is_gone: AtomicBool,
}

/// How the wait of a claim has ended, or where it is in the queue.
#[derive(Debug)]
pub(super) enum Place {
    /// The first, with its fencing token.
    First(Fence),
    /// Behind this key.
    Behind { own: u64, key: Vec<u8> },
    /// Its key is gone: its lease has ended, or somebody deleted it.
    Gone,
}

impl Claim {
    /// Grants a lease for a contender of the lock `name`, in a task of its own: if the caller is dropped, the lease is revoked after
    /// the answer, or the revocation could overtake it.
    pub(super) async fn grant(client: &EtcdClient, name: &Arc<str>, lease: Duration) -> Result<Self, LockError> {
        // Positive: Go's client writes a negative number otherwise.
        let lease_id = fastrand::i64(1..);
        let (key, sent) = (format!("{name}/{lease_id:x}").into_bytes(), Instant::now());
        let claim = Self {
            client: client.clone(),
            name: Arc::clone(name),
            lease,
            lease_id,
            key,
            owner: client.owner(),
            sure_until: SureUntil::new(sent + sure_part(lease)),
            renewed: Mutex::new(sent),
            is_gone: AtomicBool::new(false),
        };
        let grant = json!({"ID": lease_id.to_string(), "TTL": lease.as_secs().to_string()});
        let granting = client.tasks().spawn(async move {
            match claim.client.call("lease/grant", grant, claim.client.timeout()).await {
                // It exists already: another node has granted it, and its answer was too late.
                Ok(_) | Err(CallFailure::Refused { code: FAILED_PRECONDITION, .. }) => Ok(claim),
                Err(failure) => Err(failure.into()),
            }
        });
        granting.await.unwrap_or_else(|_| Err(LockError::unavailable(SERVER, "the client's runtime has ended")))
    }

    /// Joins the lock's queue, and waits until it is the first, until `until` at most; returns where it is then.
    pub(super) async fn queue(&self, until: Instant) -> Result<Place, LockError> {
        let mut place = self.while_sure(until.max(Instant::now() + self.client.timeout()), || self.join()).await?;
        while let Place::Behind { own, key } = &place {
            if Instant::now() >= until {
                return Ok(place);
            }
            let renewal = self.renewed() + self.lease / 3;
            tokio::select! {
                () = self.client.wait_until_deleted(key) => {}
                () = sleep_until(until.min(renewal).min(Instant::now() + RECHECK_INTERVAL)) => {}
            }
            let own = *own;
            place = self.while_sure(until + LAST_LOOK_TIMEOUT, || self.renew_and_look(own)).await?;
        }
        Ok(place)
    }

    /// Repeats `ask` while no node answers, as long as the lease is sure, until `end` at most.
    async fn while_sure<F>(&self, end: Instant, ask: impl Fn() -> F) -> Result<Place, LockError>
    where
        F: Future<Output = Result<Place, CallFailure>>,
    {
        loop {
            let no_answer = |_| Err(CallFailure::Unanswered("no answer within the wait".into()));
            match timeout_at(end, ask()).await.unwrap_or_else(no_answer) {
                Err(CallFailure::Unanswered(reason)) if !self.sure_until.is_over() && Instant::now() < end => {
                    tracing::debug!(%reason, name = &*self.name, "asking etcd again");
                    sleep(RETRY_PAUSE.min(time_left(end))).await;
                }
                // The lease of the new key is gone.
                Err(CallFailure::Refused { code: NOT_FOUND, .. }) => return Ok(Place::Gone),
                answered => return Ok(answered?),
            }
        }
    }

    /// Creates the key, unless an unanswered attempt has, and reads it and the first key of the queue.
    async fn join(&self) -> Result<Place, CallFailure> {
        let key = base64(&self.key);
        let absent = json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"});
        let value = base64(self.owner.to_string().as_bytes());
        let put = json!({"request_put": {"key": key, "value": value, "lease": self.lease_id.to_string()}});
        let (own, first) = (self.read_own(), read_first(&self.name));
        let join = json!({"compare": [absent], "success": [put, own, first], "failure": [own, first]});
        let answer = self.client.call("kv/txn", join, self.client.timeout()).await?;
        let reads = answer["responses"].as_array().map_or(&[][..], |all| &all[all.len().saturating_sub(2)..]);
        match reads {
            [own, first] if is_there(own) && first_kv(own)["key"] == first_kv(first)["key"] => {
                Ok(Place::First(Fence(number_of(&first_kv(own)["create_revision"]))))
            }
            [own, _] if is_there(own) => self.look(number_of(&first_kv(own)["create_revision"])).await,
            _ => Ok(Place::Gone),
        }
    }

    /// Renews the lease if a third of it is over, and finds the place of the key that was created at the revision `own`.
    async fn renew_and_look(&self, own: u64) -> Result<Place, CallFailure> {
        let (lease, sent) = (self.lease, Instant::now());
        if sent >= self.renewed() + lease / 3 {
            if !self.renew(lease / 3).await? {
                return Ok(Place::Gone);
            }
            self.sure_until.extend(sent + sure_part(lease));
        }
        self.look(own).await
    }

    /// Reads our own key, created at the revision `own`, and the nearest one before it.
    async fn look(&self, own: u64) -> Result<Place, CallFailure> {
        let before = json!({"request_range": {
            "key": base64(&queue_begin(&self.name)), "range_end": base64(&queue_end(&self.name)),
            "max_create_revision": own.saturating_sub(1).to_string(),
            "sort_target": "CREATE", "sort_order": "DESCEND", "limit": "1", "keys_only": true,
        }});
        let look = json!({"success": [self.read_own(), before]});
        let answer = self.client.call("kv/txn", look, self.client.timeout()).await?;
        let [ours, before] = [0, 1].map(|n| &answer["responses"][n]);
        Ok(match (is_there(ours), is_there(before)) {
            (false, _) => Place::Gone,
            (true, false) => Place::First(Fence(own)),
            (true, true) => Place::Behind { own, key: bytes_of(&first_kv(before)["key"]) },
        })
    }

    /// The read of our own key, as part of a transaction.
    fn read_own(&self) -> Value {
        json!({"request_range": {"key": base64(&self.key), "keys_only": true}})
    }

    /// Renews the lease, and checks that the key is there; `false` if either is gone. The caller moves `sure_until`.
    pub(super) async fn renew(&self, limit: Duration) -> Result<bool, CallFailure> {
        let sent = Instant::now();
        let keep_alive = self.client.call("lease/keepalive", json!({"ID": self.lease_id.to_string()}), limit);
        let own = self.client.call("kv/range", json!({"key": base64(&self.key), "count_only": true}), limit);
        let (kept, own) = tokio::try_join!(keep_alive, own)?;
        // A leader that stood still renews leases until it hears of the next one; the read asks a majority.
        if kept["header"]["raft_term"] != own["header"]["raft_term"] {
            return Err(CallFailure::Unanswered("the leader changed".into()));
        }
        *self.renewed.lock() = sent;
        Ok(number_of(&kept["TTL"]) > 0 && number_of(&own["count"]) > 0)
    }

    /// When the request that last renewed the lease was sent.
    pub(super) fn renewed(&self) -> Instant {
        *self.renewed.lock()
    }

    /// Deletes the key, if it is still the one that was created at the revision `fence`, and revokes the lease in the background;
    /// `false` if the key was gone. After a failure the lease is revoked in the background, too.
    pub(super) async fn release(self, Fence(created): Fence) -> Result<bool, CallFailure> {
        let key = base64(&self.key);
        let ours = json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": created.to_string()});
        let delete = json!({"compare": [ours], "success": [{"request_delete_range": {"key": key}}]});
        self.client.delete("kv/txn", delete).await
    }

    /// Revokes the lease, which deletes the key; without an answer in time it goes on in the background.
    pub(super) async fn revoke(self) {
        if revoke(&self.client, self.lease_id).await.is_ok() {
            self.is_gone.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Claim {
    /// Revokes the lease in the background, until a node has answered, unless it is revoked already.
    fn drop(&mut self) {
        if self.is_gone.load(Ordering::Relaxed) {
            return;
        }
        let (client, lease, lease_id, name) = (self.client.clone(), self.lease, self.lease_id, Arc::clone(&self.name));
        self.client.tasks().spawn(async move {
            let (mut pause, end) = (FIRST_REVOKE_PAUSE, Instant::now() + lease * REVOKED_FOR_LEASES);
            while let Err(failure) = revoke(&client, lease_id).await {
                tracing::debug!(?failure, name = &*name, "a lease is not revoked yet");
                if Instant::now() >= end {
                    return;
                }
                sleep(pause).await;
                pause = (pause * 2).min(MAX_REVOKE_PAUSE);
            }
        });
    }
}

/// Revokes a lease; one that is gone already counts as revoked.
async fn revoke(client: &EtcdClient, lease_id: i64) -> Result<(), CallFailure> {
    match client.call("lease/revoke", json!({"ID": lease_id.to_string()}), client.timeout()).await {
        Ok(_) | Err(CallFailure::Refused { code: NOT_FOUND, .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// The read of the first key of a lock's queue, as part of a transaction.
pub(super) fn read_first(name: &str) -> Value {
    json!({"request_range": {
        "key": base64(&queue_begin(name)), "range_end": base64(&queue_end(name)),
        "sort_target": "CREATE", "sort_order": "ASCEND", "limit": "1",
    }})
}

/// The prefix of all keys of a lock's queue.
fn queue_begin(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"/"].concat()
}

/// The first key after those of a lock's queue: `0` follows `/`.
fn queue_end(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"0"].concat()
}

/// The first entry of a read in the answer of a transaction.
pub(super) fn first_kv(read: &Value) -> &Value {
    &read["response_range"]["kvs"][0]
}

/// Whether a read in the answer of a transaction has an entry.
fn is_there(read: &Value) -> bool {
    !first_kv(read).is_null()
}
