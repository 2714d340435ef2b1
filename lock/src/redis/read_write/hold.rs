//! One hold of a read-write lock: its place in Redis, and every way it can end.
//!
//! 1. It is one more in its owner's field of the hash, and a string of its own, `{n}:<field>:rwlock_timeout:<i>`, which
//!    expires when the hold does. Where the owner is named, and so may hold more than once, the string says which hold it
//!    is: a release or a renewal then means this one and no other of its owner, however often it is sent. Where it is not,
//!    all is as Redisson writes it: the string is `1`, and a write hold has none.
//! 2. A task keeps it ([`lease`]) and gives it back.
//!
//! What it survives: a holder that is dropped anywhere (the value gives itself back), a command that gets no answer (the
//! hold is given back by its id, again and again, until Redis has answered). **What breaks it**: a process that is
//! stopped beyond its lease.
//!
//! Next to read: `lua/rw_release.lua`.

use super::crossing::{Crossing, Inside};
use crate::{
    Keeper, LockError, Owner,
    redis::{
        client::{RedisClient, unavailable},
        lease::{self, Held, Lease},
        semaphore::suffixed,
        station::insist,
    },
};
use redis::{RedisError, RedisResult, Script};
use std::sync::{Arc, LazyLock};
use tokio::time::Instant;

static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/rw_read.lua")));
static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/rw_write.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/rw_release.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/rw_renew.lua")));

/// What `rw_write.lua` says to an owner that reads.
pub(super) const READS: i64 = -2;

/// Which half of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

/// What Redis knows of one hold.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) client: RedisClient,
    pub(super) crossing: Arc<Crossing>,
    pub(super) side: Side,
    pub(super) owner: Owner,
    /// Which hold of the owner's it is.
    pub(super) id: String,
    pub(super) lease: Lease,
}

/// A hold that this process has, or may have. Dropping it gives it back in the background.
#[derive(Debug)]
pub(super) struct Hold {
    claim: Claim,
    /// When the command was sent that took it.
    since: Instant,
    inside: Option<Inside>,
    held: bool,
}

impl Claim {
    /// `rw_read.lua`, `rw_write.lua`: `None` where it was taken.
    async fn take(&self) -> RedisResult<Option<i64>> {
        let (script, name) = (if self.side == Side::Read { &READ } else { &WRITE }, &self.crossing.name);
        let mut script = script.key(name);
        script.key(self.strings(self.side));
        if self.side == Side::Write {
            script.key(self.strings(Side::Read));
        }
        script.arg(self.millis()).arg(self.owner.to_string()).arg(&self.id);
        script.invoke_async(&mut self.client.connection()).await
    }

    /// `rw_release.lua`: whether it was still held.
    async fn release(&self) -> RedisResult<bool> {
        let name = &self.crossing.name;
        let all = if name.contains('{') { name.clone() } else { format!("{{{name}}}") };
        let side = if self.side == Side::Read { "read" } else { "write" };
        let mut script = RELEASE.key(name);
        script.key(self.crossing.station.channel()).key(self.strings(self.side)).key(all);
        script.arg(self.field(self.side)).arg(&self.id).arg(side);
        script.invoke_async(&mut self.client.connection()).await
    }

    /// `rw_renew.lua`: whether it was still held.
    async fn renew(&self) -> RedisResult<bool> {
        let mut script = RENEW.key(&self.crossing.name);
        script.key(self.strings(self.side));
        script.arg(self.millis()).arg(self.field(self.side)).arg(&self.id);
        script.invoke_async(&mut self.client.connection()).await
    }

    fn field(&self, side: Side) -> String {
        if side == Side::Read { self.owner.to_string() } else { format!("{}:write", self.owner) }
    }

    /// What the owner's holds begin with.
    fn strings(&self, side: Side) -> String {
        suffixed(&self.crossing.name, &format!("{}:rwlock_timeout", self.field(side)))
    }

    /// Redis refuses a lease of nothing, and would do so in the middle of the script.
    fn millis(&self) -> u64 {
        self.lease.millis().max(1)
    }
}

impl Hold {
    /// Asks Redis for it: the hold, or what the script said instead. An `Err` may have taken it, and is undone.
    pub(super) async fn take(claim: Claim) -> Result<Result<Self, i64>, RedisError> {
        let mut maybe = Self { claim, since: Instant::now(), inside: None, held: true };
        match maybe.claim.take().await {
            Ok(None) => Ok(Ok(maybe)),
            Ok(Some(said)) => {
                maybe.held = false;
                Ok(Err(said))
            }
            Err(error) => {
                maybe.held = !error.is_connection_refusal();
                Err(error)
            }
        }
    }

    /// From now on its owner is known to be inside.
    pub(super) fn known(mut self) -> Self {
        self.inside = Some(self.claim.crossing.enter(self.claim.owner));
        self
    }

    /// Keeps it until its holder gives it back.
    pub(super) async fn keep(self, keeper: Keeper) {
        let (lease, since) = (self.claim.lease, self.since);
        lease::keep(self, lease, since, keeper).await;
    }
}

impl Held for Hold {
    fn name(&self) -> &str {
        &self.claim.crossing.name
    }

    async fn renew(&self) -> Result<bool, LockError> {
        self.claim.renew().await.map_err(|e| unavailable(&e))
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        match self.claim.release().await {
            Ok(given_back) => {
                self.held = false;
                if given_back { Ok(()) } else { Err(LockError::Lost { name: self.name().to_owned() }) }
            }
            // Dropping it tries again.
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.held && tokio::runtime::Handle::try_current().is_ok() {
            let claim = self.claim.clone();
            self.claim.client.spawn(async move { insist(|| claim.release()).await });
        }
    }
}
