//! What is held: a node, by one guard or by several of one owner.
//!
//! 1. A hold is shared by the guards of its owner; the node goes with the last of them, in whatever order they end.
//! 2. Each guard has a task of its own, which tells its holder when the session is in doubt and waits for the release.
//! 3. Who comes again asks the server whether the node is still there, and takes none of its own.
//!
//! What it survives: guards that are dropped, an owner that takes and releases at the same time in several tasks.
//! **What breaks it**: an owner that is shared by tasks which should exclude each other: they are all let in.
//!
//! Next to read: `node.rs`.

use super::{
    ZkClient,
    engine::{ANSWER, Turn},
    insist,
    node::Node,
    over, unavailable,
};
use crate::{Fence, Guard, Keeper, LockError, Owner};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::time::timeout;

/// A node whose turn has come. Dropping it deletes the node in the background.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) node: Node,
    fence: Fence,
    _seat: Option<Arc<Seat>>,
}

/// What one owner holds of one lock. Who takes it holds the mutex meanwhile, so that two tasks of one owner do not
/// queue behind each other.
pub(super) type Seat = tokio::sync::Mutex<Holds>;

/// The holds, as long as they last.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) exclusive: Weak<Hold>,
    pub(super) shared: Weak<Hold>,
}

/// The seats of a process. One that nobody uses takes no memory for long.
#[derive(Debug, Default)]
pub(super) struct Seats(Mutex<HashMap<Key, Weak<Seat>>>);

/// The kind of lock, its path, and who takes it.
type Key = (&'static str, String, Owner);

impl Seats {
    pub(super) fn of(&self, kind: &'static str, path: &str, owner: Owner) -> Arc<Seat> {
        let mut all = self.0.lock();
        let key = (kind, path.to_owned(), owner);
        if let Some(seat) = all.get(&key).and_then(Weak::upgrade) {
            return seat;
        }
        all.retain(|_, seat| seat.strong_count() > 0);
        let seat = Arc::<Seat>::default();
        all.insert(key, Arc::downgrade(&seat));
        seat
    }
}

impl Hold {
    pub(super) fn new(node: Node, fence: Fence, seat: Option<Arc<Seat>>) -> Arc<Self> {
        Arc::new(Self { node, fence, _seat: seat })
    }

    pub(super) fn of(turn: Turn, seat: Option<Arc<Seat>>) -> Arc<Self> {
        Self::new(turn.node, turn.fence, seat)
    }

    /// Asks the server whether the node is still there, for its owner to come in once more.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] where it is not, or the session is in doubt: the owner has yet to give back what it lost.
    /// [`LockError::Unavailable`].
    pub(super) async fn again(&self, zk: &ZkClient, name: &str) -> Result<(), LockError> {
        let lost = || LockError::Lost { name: name.to_owned() };
        if !zk.lives(self.node.session()) {
            return Err(lost());
        }
        let path = self.node.path();
        let there = tokio::select! {
            biased;
            there = insist(|| self.node.client().check_stat(&path)) => there,
            error = zk.given_up() => return Err(error),
        };
        match there {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(lost()),
            Err(error) if over(&error) => Err(lost()),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// One more guard of this hold.
    pub(super) fn guard(self: Arc<Self>, zk: &ZkClient, name: &str) -> Guard {
        let (guard, keeper) = Guard::new(name, Some(self.fence));
        zk.tasks().spawn(keep(zk.clone(), name.to_owned(), self, keeper));
        guard
    }

    async fn end(mut self, name: String) -> Result<(), LockError> {
        match timeout(ANSWER, self.node.delete()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(LockError::Lost { name }),
            Ok(Err(error)) if over(&error) => Err(LockError::Lost { name }),
            Ok(Err(error)) => Err(unavailable(error)),
            Err(_) => Err(unavailable("the release was not answered; it goes on in the background")),
        }
    }
}

/// Keeps the lock until its holder gives it back, or the client is closed under it.
async fn keep(client: ZkClient, name: String, hold: Arc<Hold>, mut keeper: Keeper) {
    let session = hold.node.session();
    let release = tokio::select! {
        release = keeper.asked_to_release() => release,
        () = client.in_doubt(session) => {
            keeper.tell_lost();
            // The holder may still be inside, and the session may yet live: the node stays until it is out.
            tokio::select! {
                release = keeper.asked_to_release() => release,
                () = client.ended() => return,
            }
        }
    };
    release.done(match Arc::into_inner(hold) {
        Some(last) => last.end(name).await,
        None if client.lives(session) => Ok(()),
        None => Err(LockError::Lost { name }),
    });
}
