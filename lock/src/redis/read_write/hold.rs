//! A hold of a read-write lock, and the scripts that take, renew and end it.
//!
//! 1. A read hold counts in the hash under its owner, and has a key of its own that ends with it: a reader that died is
//!    counted no longer than its own lease, however many others read.
//! 2. A write hold counts under its owner with `:write` appended.
//! 3. The last read hold frees the lock; the last write hold frees it too, or leaves it to what its owner reads.
//! 4. One that is lost gives nothing back: what it had ends with its lease.
//!
//! Next to read: `lua/read_release.lua`.

use super::{Mode, Shared};
use crate::{
    LockError, Owner,
    redis::{
        client::{Holds, unavailable},
        lease::{Held, Lease},
        script,
        station::{Place, insist_for},
        tally::Leaves,
    },
};
use redis::RedisError;
use std::{sync::Arc, time::Duration};
use tokio::{runtime::Handle, time::Instant};

/// What the script said.
pub(super) enum Tried {
    Taken,
    /// Others are inside; their lease runs for so long, or for ever.
    Refused(Option<Duration>),
    /// The owner reads, and asks to write.
    Upgrade,
}

/// A hold. Dropping it gives it back in the background.
#[derive(Debug)]
pub(super) struct Hold {
    shared: Arc<Shared>,
    mode: Mode,
    owner: Owner,
    lease: Lease,
    leased: Instant,
    /// A writer's place at the head of this process's line.
    place: Option<Place>,
    /// Lost, or given back.
    over: bool,
}

impl Shared {
    /// The owner's field in the hash.
    fn field(mode: Mode, owner: Owner) -> String {
        match mode {
            Mode::Read => owner.to_string(),
            Mode::Write => format!("{owner}:write"),
        }
    }

    /// What the keys of an owner's read holds begin with.
    fn read_holds(&self, owner: Owner) -> String {
        format!("{}:{owner}:rwlock_timeout", script::suffixable(&self.key))
    }

    pub(super) async fn acquire(&self, mode: Mode, owner: Owner, lease: Lease) -> Result<Tried, LockError> {
        let mut script = match mode {
            Mode::Read => script::READ_ACQUIRE.key(&self.key),
            Mode::Write => script::WRITE_ACQUIRE.key(&self.key),
        };
        script.key(self.read_holds(owner));
        script.arg(lease.millis()).arg(owner.to_string()).arg(Self::field(Mode::Write, owner));
        let (code, n): (i64, i64) =
            script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))?;
        Ok(match code {
            1 => Tried::Taken,
            0 => Tried::Refused(u64::try_from(n).ok().map(Duration::from_millis)),
            _ => Tried::Upgrade,
        })
    }

    async fn renew(&self, mode: Mode, owner: Owner, lease: Lease) -> Result<bool, LockError> {
        let mut script = match mode {
            Mode::Read => script::READ_RENEW.key(&self.key),
            Mode::Write => script::RENEW.key(&self.key),
        };
        if mode == Mode::Read {
            script.key(self.read_holds(owner));
        }
        script.arg(lease.millis()).arg(Self::field(mode, owner));
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
    }

    /// Whether there was anything to give back.
    async fn release(&self, mode: Mode, owner: Owner, holds: Holds) -> Result<bool, RedisError> {
        let mut script = match mode {
            Mode::Read => script::READ_RELEASE.key(&self.key),
            Mode::Write => script::WRITE_RELEASE.key(&self.key),
        };
        script.key(self.station.channel());
        if mode == Mode::Read {
            script.key(self.read_holds(owner));
        }
        script.arg(Self::field(mode, owner)).arg(i32::from(holds == Holds::One)).arg(script::suffixable(&self.key));
        let left: Option<i64> = script.invoke_async(&mut self.client.connection()).await?;
        Ok(left.is_some())
    }
}

/// Gives all of the owner's holds of this kind back, in the background; until then the owner is refused.
pub(super) fn undo(shared: &Arc<Shared>, mode: Mode, owner: Owner, lease: Lease) {
    let shared = Arc::clone(shared);
    shared.client.clone().spawn(async move {
        insist_for(lease.duration(), || shared.release(mode, owner, Holds::All)).await;
        shared.station.tally().returned(owner);
    });
}

impl Hold {
    pub(super) fn new(
        shared: Arc<Shared>,
        mode: Mode,
        owner: Owner,
        lease: Lease,
        leased: Instant,
        place: Option<Place>,
    ) -> Self {
        shared.station.tally().enter(owner, mode);
        Self { shared, mode, owner, lease, leased, place, over: false }
    }

    pub(super) fn leased(&self) -> Instant {
        self.leased
    }

    fn lost(&self) -> LockError {
        LockError::Lost { name: self.shared.key.clone() }
    }
}

impl Held for Hold {
    fn name(&self) -> &str {
        &self.shared.key
    }

    async fn renew(&self) -> Result<bool, LockError> {
        self.shared.renew(self.mode, self.owner, self.lease).await
    }

    fn on_loss(&mut self) {
        self.over = true;
        self.place.take();
        let tally = self.shared.station.tally();
        // What Redis still counts of it is given back with the owner's last hold.
        tally.doubt(self.owner, self.mode);
        tally.leave(self.owner, self.mode);
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        if std::mem::replace(&mut self.over, true) {
            return Err(self.lost());
        }
        let last = self.shared.station.tally().leave(self.owner, self.mode);
        let holds = if last == Leaves::LastInDoubt { Holds::All } else { Holds::One };
        match self.shared.release(self.mode, self.owner, holds).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.lost()),
            Err(error) => {
                if self.shared.station.tally().doubt(self.owner, self.mode) {
                    undo(&self.shared, self.mode, self.owner, self.lease);
                }
                Err(unavailable(&error))
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.over || Handle::try_current().is_err() {
            return;
        }
        let tally = self.shared.station.tally();
        tally.leave(self.owner, self.mode);
        if tally.doubt(self.owner, self.mode) {
            undo(&self.shared, self.mode, self.owner, self.lease);
        }
    }
}
