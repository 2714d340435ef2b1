//! What is held: a node, by one guard or by several of one owner.
//!
//! 1. A hold is shared by the guards of its owner; the node goes with the last of them, in whatever order they end.
//! 2. Each guard has a task of its own, which tells its holder when the session is in doubt and waits for the release.
//! 3. Who comes again asks the server whether the node is still there, and takes none of its own.
//!
//! What it survives: guards that are dropped, an owner that takes and releases at the same time in several tasks.
//! **What breaks it**: an owner that is shared by tasks which should exclude each other: they are all let in.
//!
//! Next to read: `../read_write.rs`.

use super::{ANSWER, Wait, insist, node::Node, over, queue::Turn, unavailable};
use crate::{
    Fence, Guard, LockError, Owner,
    keeper::{Held, keep},
    reentry::{Holds, OwnerSlot, Reentry, slot_of},
    sure_until::SureUntil,
    zk::ZkClient,
};
use std::sync::Arc;
use tokio::{sync::OwnedMutexGuard, time::timeout};

/// A node whose turn has come. Dropping it deletes the node in the background.
#[derive(Debug)]
pub(in crate::zk) struct Hold {
    pub(in crate::zk) node: Node,
    fence: Fence,
    sure_until: Arc<SureUntil>,
    _slot: Option<Arc<OwnerSlot<Hold>>>,
}

/// What one owner has of a lock; see [`Reentry`].
pub(in crate::zk) type Slot = OwnedMutexGuard<Holds<Hold>>;

/// The slot of `owner`, which another of its tasks may have while it waits for the lock.
pub(in crate::zk) async fn slot(all: &Reentry<Hold>, path: &str, owner: Owner, wait: Wait) -> Result<Slot, LockError> {
    all.enter(path, owner, wait.asked, wait.end).await
}

impl Hold {
    pub(in crate::zk) fn of(Turn { node, fence }: Turn, slot: Option<&Slot>) -> Arc<Self> {
        let sure_until = node.session().sure_until();
        Arc::new(Self { node, fence, sure_until, _slot: slot.map(slot_of) })
    }

    /// Asks the server whether the node is still there, for its owner to come in once more.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] where it is not, or the session is in doubt: the owner has yet to give back what it lost.
    /// [`LockError::Unavailable`].
    pub(in crate::zk) async fn again(&self, zk: &ZkClient, name: &str) -> Result<(), LockError> {
        let lost = || LockError::Lost { name: name.to_owned() };
        if self.sure_until.is_over() {
            return Err(lost());
        }
        let path = self.node.path();
        match zk.while_up(insist(|| self.node.session().check_stat(&path))).await? {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(lost()),
            Err(error) if over(&error) => Err(lost()),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// One more guard of this hold.
    pub(in crate::zk) fn guard(self: Arc<Self>, zk: &ZkClient, name: &str) -> Guard {
        let (guard, keeper) = Guard::until(self.sure_until.clone(), name, Some(self.fence));
        let (client, sure_until) = (zk.clone(), self.sure_until.clone());
        let kept = keep(Share { hold: self, name: name.to_owned() }, sure_until, keeper);
        // The client may be closed under it.
        zk.tasks().spawn(async move {
            tokio::select! {
                () = kept => {}
                () = client.ended() => {}
            }
        });
        guard
    }

    async fn end(mut self, name: String) -> Result<(), LockError> {
        match timeout(ANSWER, self.node.delete(None)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(LockError::Lost { name }),
            Ok(Err(error)) if over(&error) => Err(LockError::Lost { name }),
            Ok(Err(error)) => Err(unavailable(error)),
            Err(_) => Err(unavailable("the release was not answered; it goes on in the background")),
        }
    }
}

/// One guard's part in a hold.
struct Share {
    hold: Arc<Hold>,
    name: String,
}

impl Held for Share {
    fn name(&self) -> &str {
        &self.name
    }

    /// The session's heartbeat keeps it, and tells all who hold something.
    async fn lost(&self, _: &SureUntil) {
        std::future::pending().await
    }

    async fn give_back(self, lost: bool) -> Result<(), LockError> {
        // Where it is lost the node goes in the background: who was to be told was told that it counts for nothing.
        match Arc::into_inner(self.hold) {
            Some(last) if !lost => last.end(self.name).await,
            _ => Ok(()),
        }
    }
}
