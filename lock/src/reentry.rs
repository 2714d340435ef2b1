//! Re-entry: the holds of each owner in this process, so that it can take a lock again.
//!
//! 1. The server sees a fresh identity for each first hold of an owner; only this process knows the owner and its hold
//!    count. So a late or repeated undo affects only the hold that it means.
//! 2. A task that takes a lock as an owner locks the owner's [`OwnerEntry`] meanwhile. The first one's hold is stored
//!    there, and the next one shares it.
//! 3. A hold ends with its last guard: the entry only has a weak reference.
//!
//! An owner must not be shared by tasks that should exclude each other: they are all let in.

use crate::{
    Owner,
    registry::{Registration, Registry},
};
use std::sync::{Arc, Weak};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::{Instant, timeout_at},
};

/// A client's entries for one kind of lock: one for each lock and each owner that takes or holds it.
#[derive(Debug)]
pub(crate) struct Reentry<H>(Registry<(String, Owner), OwnerEntry<H>>);

/// What one owner holds of one lock. A task that takes the lock as this owner locks the entry meanwhile; a hold keeps it alive.
pub(crate) type OwnerEntry<H> = Mutex<OwnerHolds<H>>;

/// One owner's holds of one lock, by weak references: an exclusive one, a shared one, both or none.
#[derive(Debug)]
pub(crate) struct OwnerHolds<H> {
    pub(crate) exclusive: Weak<H>,
    #[cfg_attr(not(any(feature = "redis", feature = "zookeeper")), expect(dead_code, reason = "only readers share"))]
    pub(crate) shared: Weak<H>,
    _registration: Registration,
}

/// Whether a hold excludes all others, or is shared as readers' holds are.
#[cfg(any(feature = "redis", feature = "zookeeper"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldKind {
    Exclusive,
    Shared,
}

impl<H> Default for Reentry<H> {
    fn default() -> Self {
        Self(Registry::default())
    }
}

impl<H> OwnerHolds<H> {
    fn without_holds(registration: Registration) -> Self {
        Self { exclusive: Weak::new(), shared: Weak::new(), _registration: registration }
    }

    /// Returns the owner's hold of this kind and that of the other kind, each to read or replace.
    #[cfg(any(feature = "redis", feature = "zookeeper"))]
    pub(crate) fn same_and_other_kind(&mut self, kind: HoldKind) -> (&mut Weak<H>, &mut Weak<H>) {
        match kind {
            HoldKind::Exclusive => (&mut self.exclusive, &mut self.shared),
            HoldKind::Shared => (&mut self.shared, &mut self.exclusive),
        }
    }
}

impl<H: Send + Sync + 'static> Reentry<H> {
    /// Locks the owner's entry for the lock `name`; `None` if another of its tasks has it until `until`.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn lock_entry(&self, name: &str, owner: Owner, until: Instant) -> Option<OwnedMutexGuard<OwnerHolds<H>>> {
        let entry =
            self.0.get_or_make(&(name.to_owned(), owner), |registration| Mutex::new(OwnerHolds::without_holds(registration)));
        timeout_at(until, entry.lock_owned()).await.ok()
    }
}

/// Returns the entry that this mutex guard has locked, for a hold to keep alive.
pub(crate) fn entry_of<H>(entry: &OwnedMutexGuard<OwnerHolds<H>>) -> Arc<OwnerEntry<H>> {
    Arc::clone(OwnedMutexGuard::mutex(entry))
}
