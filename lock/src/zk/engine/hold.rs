//! A lock's handle and its hold: a node, shared by the guards of one owner.
//!
//! 1. [`QueueHandle::take_or_share`]: if its owner already holds the lock, check that the node is still there and share it;
//!    otherwise [queue](super::queue). An owner that writes reads with a second node at the writer's own number.
//! 2. The node goes with the last guard, in whatever order they end.
//! 3. Each guard has a task, which tells its holder when the session is in doubt and waits for the release.
//!
//! An owner must not be shared by tasks that should exclude each other: they are all let in.
//!
//! Next to read: `queue.rs`.

use super::queue::{self, FencedNode, Recipe};
use super::{Wait, is_session_over, node::Node, repeat_until_answered, to_lock_error, unavailable_error};
use crate::events::Observer;
use crate::keeper::{Share, run_keeper};
use crate::reentry::{HoldKind, OwnerEntry, Reentry, entry_of};
use crate::{Fence, Guard, Holder, LockError, Owner, sure_until::SureUntil, zk::ZkClient};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use zookeeper_client::Error;

/// The broken rule if an owner that reads asks for the write lock.
const UPGRADE_RULE: &str = "its owner reads and cannot write before it has given that back: two of them would wait for ever";

/// A lock's handle: where it queues, by which recipe, and for whom.
#[derive(Debug, Clone)]
pub(in crate::zk) struct QueueHandle {
    pub(in crate::zk) client: ZkClient,
    pub(in crate::zk) path: String,
    pub(in crate::zk) owner: Option<Owner>,
    pub(in crate::zk) recipe: &'static Recipe,
}

impl QueueHandle {
    pub(in crate::zk) fn new(client: &ZkClient, recipe: &'static Recipe, path: &str) -> Self {
        Self { client: client.clone(), recipe, path: path.to_owned(), owner: None }
    }

    /// Returns the first node in the queue and its data; `None` if there is none.
    pub(in crate::zk) async fn holder(&self) -> Result<Option<Holder>, LockError> {
        queue::holder(&self.client, &self.path, self.recipe.markers).await
    }

    /// Deletes the nodes of all that hold this lock, or this half of it; returns whether there were any.
    pub(in crate::zk) async fn force_unlock(&self) -> Result<bool, LockError> {
        queue::force_unlock(&self.client, self.recipe, &self.path).await
    }

    /// Takes a hold or shares the owner's, and makes a guard of it; tells the observer how that ended.
    pub(in crate::zk) async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let take = self.client.observer().report_acquire(self.recipe.kind, &self.path, self.take_or_share(wait));
        Ok(take.await?.make_guard(&self.client, self.recipe.kind, &self.path))
    }

    /// Takes a new hold, or shares the owner's present one; [`LockError::Lost`] if that is lost. A writer that also reads
    /// gets a second node, without queueing, and the writer's token; a reader that asks to write gets [`LockError::Invalid`].
    pub(in crate::zk) async fn take_or_share(&self, wait: Duration) -> Result<Arc<NodeHold>, LockError> {
        let (zk, path, recipe, wait) = (&self.client, &self.path, self.recipe, Wait::new(wait));
        let Some(owner) = self.owner else {
            return Ok(NodeHold::of(queue::queue_and_wait(zk, recipe, path, wait).await?, None));
        };
        // Each kind of lock in one directory is a lock of its own.
        let lock = format!("{path}/{}", recipe.markers[0]);
        let reentry = zk.0.shared.of::<Reentry<NodeHold>>();
        let mut holds = reentry.lock_entry(&lock, owner, wait.end).await.ok_or_else(|| wait.taken_error(path))?;
        let entry = entry_of(&holds);
        let (same, other) = holds.same_and_other_kind(recipe.hold_kind);
        if let Some(hold) = same.upgrade() {
            hold.reenter(zk, path, wait).await?;
            return Ok(hold);
        }
        if recipe.hold_kind == HoldKind::Exclusive && other.strong_count() > 0 {
            return Err(LockError::invalid(path, UPGRADE_RULE));
        }
        let hold = match other.upgrade() {
            Some(writer) => {
                let mut node = writer.node.with_marker(recipe.marker);
                zk.while_alive(wait, node.create()).await?.map_err(|error| hold_error(error, path))?;
                // Only now is it certain that no other writer came in between.
                writer.reenter(zk, path, wait).await?;
                // The new node's zxid is above those of the writers that wait behind it.
                let fence = writer.fence;
                NodeHold::of(FencedNode { node, fence }, Some(entry))
            }
            None => NodeHold::of(queue::queue_and_wait(zk, recipe, path, wait).await?, Some(entry)),
        };
        *same = Arc::downgrade(&hold);
        Ok(hold)
    }
}

/// The public methods of every queueing lock's handle.
macro_rules! handle {
    ($($lock:ident),+) => {$(
        impl $lock {
            /// Takes the lock as `owner` ([`ZkClient::owner`](crate::zk::ZkClient::owner)), who may take it again while it
            /// holds it, in this process and at once. The node goes with the last of its guards, in whatever order.
            ///
            /// ```no_run
            /// # fn example(zk: oversell_lock::zk::ZkClient) {
            /// let one = zk.owner();
            /// let lock = zk.lock("/curator/lock").owner(one);
            /// let documents = zk.rw_lock("/curator/rwlock").write().owner(one);
            /// # }
            /// ```
            #[must_use]
            pub fn owner(self, owner: crate::Owner) -> Self {
                Self(QueueHandle { owner: Some(owner), ..self.0 })
            }

            /// Returns the holder, in any process, as the server showed it a moment ago: the name of the first node in
            /// its queue and, after a space, its data (Curator writes its host's address); `None` if the queue is empty. Of
            /// a read-write lock it is the writer or the first reader, whichever half this is.
            ///
            /// ```no_run
            /// # use oversell_lock::{LockError, zk::ZkClient};
            /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
            /// if let Some(holder) = zk.lock("/curator/lock").holder().await? {
            ///     println!("held by {}", holder.id);
            /// }
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            ///
            /// [`LockError::Unavailable`](crate::LockError::Unavailable), [`LockError::Refused`](crate::LockError::Refused), and
            /// [`LockError::Invalid`](crate::LockError::Invalid) for a name that is no path.
            ///
            /// # Cancel safety
            ///
            /// Safe: it only reads.
            pub async fn holder(&self) -> Result<Option<crate::Holder>, crate::LockError> {
                self.0.holder().await
            }

            /// Frees the lock, whoever holds it, for operators: deletes its holder's node, and of a read lock those of all
            /// its readers. Returns whether it was held, of a read-write lock by this half. The holder learns of it when it
            /// [re-enters](Self::owner) or releases; waiters of its own process wait until then.
            ///
            /// ```no_run
            /// # use oversell_lock::{LockError, zk::ZkClient};
            /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
            /// let was_held = zk.lock("/curator/lock").force_unlock().await?;
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            ///
            /// As [`holder`](Self::holder); some of several nodes may then be deleted.
            ///
            /// # Cancel safety
            ///
            /// It may have been freed or not.
            pub async fn force_unlock(&self) -> Result<bool, crate::LockError> {
                self.0.force_unlock().await
            }
        }

        impl crate::Lock for $lock {
            fn name(&self) -> &str {
                &self.0.path
            }

            async fn acquire(&self, wait: std::time::Duration) -> Result<crate::Guard, crate::LockError> {
                self.0.acquire(wait).await
            }
        }

        crate::inherent!($lock);
    )+};
}
pub(in crate::zk) use handle;

/// A hold: a node whose turn it is. Dropping it deletes the node in the background.
#[derive(Debug)]
pub(in crate::zk) struct NodeHold {
    pub(in crate::zk) node: Node,
    fence: Fence,
    sure_until: SureUntil,
    _owner_entry: Option<Arc<OwnerEntry<NodeHold>>>,
}

impl NodeHold {
    /// Makes a hold of a node whose turn it is; `entry` is that of a named owner, which the hold keeps alive.
    pub(in crate::zk) fn of(FencedNode { node, fence }: FencedNode, entry: Option<Arc<OwnerEntry<Self>>>) -> Arc<Self> {
        let sure_until = node.session().sure_until();
        Arc::new(Self { node, fence, sure_until, _owner_entry: entry })
    }

    /// Checks that the node is still there, for a re-entry of its owner.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if it is not, or the session is in doubt: the owner must first release what it lost.
    /// [`LockError::Unavailable`].
    async fn reenter(&self, zk: &ZkClient, name: &str, wait: Wait) -> Result<(), LockError> {
        let path = self.node.path();
        let there = async {
            if self.sure_until.is_over() {
                Ok(None)
            } else {
                repeat_until_answered(|| self.node.session().check_stat(&path)).await
            }
        };
        let there = zk.while_alive(wait, there).await?.map_err(|error| hold_error(error, name))?;
        there.map(drop).ok_or_else(|| LockError::lost(name))
    }

    /// Makes one more guard of this hold, and spawns its keeper.
    pub(in crate::zk) fn make_guard(self: Arc<Self>, zk: &ZkClient, kind: &'static str, name: &str) -> Guard {
        let (guard, keeper) = Guard::with_sure_until(self.sure_until.clone(), name, Some(self.fence));
        let (client, sure_until) = (zk.clone(), self.sure_until.clone());
        let share = SessionShare { hold: self, kind, name: name.to_owned(), client: zk.clone() };
        let kept = run_keeper(share, sure_until, keeper);
        // The task ends with the client, after it has told the holder.
        zk.tasks().spawn(async move {
            tokio::select! {
                biased;
                () = kept => {}
                () = client.wait_until_ending() => {}
            }
        });
        guard
    }

    /// Deletes the node; [`LockError::Lost`] if it was gone already or the session is over. After any other error, also without
    /// an answer in time, the deletion goes on in the background.
    async fn release(mut self, name: String) -> Result<(), LockError> {
        match timeout(self.node.session().timeout, self.node.delete(None)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(LockError::lost(name)),
            Ok(Err(error)) => Err(hold_error(error, &name)),
            Err(_) => Err(unavailable_error("the release was not answered; it goes on in the background")),
        }
    }
}

/// The error of a failed request of a hold: its loss, if the session is over.
fn hold_error(error: Error, name: &str) -> LockError {
    if is_session_over(&error) { LockError::lost(name) } else { to_lock_error(error) }
}

/// One guard's share of a hold, which lasts while the session does.
struct SessionShare {
    hold: Arc<NodeHold>,
    kind: &'static str,
    name: String,
    client: ZkClient,
}

impl Share for SessionShare {
    fn observer(&self) -> &Observer {
        self.client.observer()
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    /// Completes when the client is closed. The session's heartbeat renews the hold, and `sure_until` ends with the session.
    async fn renew_until_lost(&self, _: &SureUntil) {
        self.client.wait_until_ending().await;
    }

    /// Deletes the node if this was the last guard; after a loss in the background.
    async fn finish(self, lost: bool) -> Result<(), LockError> {
        match Arc::into_inner(self.hold) {
            Some(last) if !lost => last.release(self.name).await,
            _ => Ok(()),
        }
    }
}
