//! A mutex in ZooKeeper: Curator's `InterProcessMutex`, without its re-entry.
//!
//! 1. Queue with a node `_c_<uuid>-lock-NNNNNNNNNN` in the lock's directory; the first in it holds the lock.
//! 2. Each waits for the one before it, and looks again when that one goes.
//! 3. Release: delete the node, and wait for the answer.
//!
//! What it survives: a holder that dies (its session ends, and its node with it), a lost connection, a server
//! restart, many waiters in one process. **What breaks it**: a holder that is paused beyond its session, and then
//! writes; the [`fence`](crate::Guard::fence) lets the resource refuse that. A holder whose node somebody deletes by
//! hand is not told before it releases: ephemeral nodes go with their session, and that is what is watched.
//!
//! Next to read: `engine.rs`.

use super::{
    ZkClient,
    engine::{self, ANSWER, Recipe, Turn},
    over, unavailable,
};
use crate::{Guard, Keeper, Lock, LockError};
use std::time::Duration;
use tokio::time::timeout;

const MUTEX: Recipe = Recipe { marker: "lock-", waits_for: predecessor };

/// The first holds the lock; each of the others waits for the one before it.
fn predecessor(_: &[&str], own: usize) -> Option<usize> {
    own.checked_sub(1)
}

/// A contender for a lock in ZooKeeper; see [`ZkClient::lock`].
///
/// Its fencing token is the zxid of the node's creation.
#[derive(Debug, Clone)]
pub struct ZkLock {
    client: ZkClient,
    path: String,
}

impl ZkLock {
    pub(super) fn new(client: ZkClient, path: &str) -> Self {
        Self { client, path: path.to_owned() }
    }
}

impl Lock for ZkLock {
    fn name(&self) -> &str {
        &self.path
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let turn = engine::turn(&self.client, &MUTEX, &self.path, wait).await?;
        let (guard, keeper) = Guard::new(&self.path, Some(turn.fence));
        self.client.tasks().spawn(keep(self.client.clone(), self.path.clone(), turn, keeper));
        Ok(guard)
    }
}

/// Keeps the lock until its holder gives it back, or the client is closed under it.
async fn keep(client: ZkClient, name: String, turn: Turn, mut keeper: Keeper) {
    let Turn { mut node, place, .. } = turn;
    let release = tokio::select! {
        release = keeper.asked_to_release() => release,
        () = client.in_doubt(node.session()) => {
            keeper.tell_lost();
            // The holder may still be inside, and the session may yet live: the node stays until it is out.
            tokio::select! {
                release = keeper.asked_to_release() => release,
                () = client.ended() => return,
            }
        }
    };
    let released = match timeout(ANSWER, node.delete()).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(LockError::Lost { name }),
        Ok(Err(error)) if over(&error) => Err(LockError::Lost { name }),
        Ok(Err(error)) => Err(unavailable(error)),
        Err(_) => Err(unavailable("the release was not answered; it goes on in the background")),
    };
    drop((node, place));
    release.done(released);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_waits_for_nobody_and_each_other_for_the_one_before_it() {
        let queue = ["a", "b", "c"];
        assert_eq!(predecessor(&queue, 0), None);
        assert_eq!(predecessor(&queue, 1), Some(0));
        assert_eq!(predecessor(&queue, 2), Some(1));
    }
}
