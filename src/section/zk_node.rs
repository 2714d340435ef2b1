//! Shared by the hand-written ZooKeeper locks of §3.3 to §3.5, the printed ones too: a contender's node, and the section.
//!
//! 1. [`create`]: create an ephemeral node, or report that the name is taken.
//! 2. [`run_then_release`]: the section (read the row, write one less), then delete the node.
//! 3. A caller that is cancelled at any `await`, or panics, deletes its node in the background ([`Node`]).
//!
//! A creation runs in a task of its own, so that cancelling the caller does not leave it half done. A node whose answer
//! was lost is found by the owner in its data, and deleted. **What it cannot do**: clean up after a killed process: its
//! node is deleted when its session ends.
//!
//! Next: `zk_ephemeral.rs`, the first stage.

use super::{Deduction, Job, LockState};
use crate::{ctx::Ctx, error::Error, section::backstop::Backstop, server::Server};
use oversell_lock::Fence;
use std::sync::atomic::{AtomicU32, Ordering};
use zookeeper_client::{Acls, Client, CreateMode, Error as Zk, OneshotWatcher};

/// A contender's node. Dropping it deletes it in the background.
pub(crate) struct Node {
    client: Client,
    path: String,
    deletion: Backstop<Option<LockState>>,
    /// The zxid of its creation: it grows with every change on the server.
    fence: Fence,
}

/// Creates a node at `path` (a sequential one gets its number appended), and a missing parent; `None` if the node exists.
pub(crate) async fn create(ctx: &Ctx, job: &Job, path: &str, mode: CreateMode) -> Result<Option<Node>, Error> {
    let (owner, ctx) = (job.owner(ctx).to_string(), ctx.clone());
    let making = create_node(ctx.clone(), path.to_owned(), owner, mode);
    let creation = ctx.tasks.spawn(making);
    creation.await.map_err(|e| Error::Internal(e.to_string()))?
}

/// The task of [`create`]. If the answer is lost, it fails, and the node that may exist is deleted in the background.
async fn create_node(ctx: Ctx, path: String, owner: String, mode: CreateMode) -> Result<Option<Node>, Error> {
    let client = ctx.zk.session()?;
    let options = mode.with_acls(Acls::anyone_all());
    loop {
        match client.create(&path, owner.as_bytes(), &options).await {
            Ok((stat, number)) => {
                let path = if mode == CreateMode::EphemeralSequential { format!("{path}{number}") } else { path };
                let fence = Fence(stat.czxid.cast_unsigned());
                return Ok(Some(Node {
                    deletion: Backstop::new(&ctx, delete_node(client.clone(), path.clone())),
                    client,
                    path,
                    fence,
                }));
            }
            Err(Zk::NodeExists) => return Ok(None),
            Err(Zk::NoNode) => {
                let parent = CreateMode::Container.with_acls(Acls::anyone_all());
                client.mkdir(parent_of(&path), &parent).await.map_err(unavailable)?;
            }
            Err(lost) => {
                ctx.tasks.spawn(async move {
                    if let Err(error) = delete_unanswered(&client, &path, &owner).await {
                        tracing::debug!(%error, path, "the node of an unanswered creation was not looked for");
                    }
                });
                return Err(unavailable(lost));
            }
        }
    }
}

/// Deletes the node that a creation without an answer may have made: the one of this name with this owner. A session's
/// requests are executed in order, so the node exists by now or never will.
async fn delete_unanswered(client: &Client, path: &str, owner: &str) -> Result<(), Zk> {
    let parent = parent_of(path);
    for child in repeat_until_answered(|| client.list_children(parent)).await? {
        let child = format!("{parent}/{child}");
        if child.starts_with(path) && repeat_until_answered(|| client.get_data(&child)).await?.0 == owner.as_bytes() {
            repeat_until_answered(|| client.delete(&child, None)).await?;
        }
    }
    Ok(())
}

/// Creates a sequential node at `path`, the last place in the queue. Does not wait for its turn.
pub(crate) async fn enqueue(ctx: &Ctx, job: &Job, path: &str) -> Result<Node, Error> {
    loop {
        // `None`: the numbered name is taken.
        if let Some(node) = create(ctx, job, path, CreateMode::EphemeralSequential).await? {
            return Ok(node);
        }
    }
}

/// Runs the section with the node's fencing token, then deletes the node, after an error too, and reports whether the lock was
/// kept. A failed deletion does not undo a sale.
pub(crate) async fn run_then_release<F, S>(node: Node, section: F) -> Result<Deduction, Error>
where
    F: FnOnce(Option<Fence>) -> S,
    S: Future<Output = Result<Deduction, Error>>,
{
    let outcome = section(Some(node.fence)).await;
    let found = node.deletion.run_now().await.flatten();
    Ok(outcome?.with_lock_state(found))
}

impl Node {
    /// The name of the node, without the path of its parent.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// The names of all children of its parent, its own included.
    pub(crate) async fn siblings(&self) -> Result<Vec<String>, Error> {
        repeat_until_answered(|| self.client.list_children(parent_of(&self.path))).await.map_err(unavailable)
    }

    /// Watches a sibling, until it changes or goes; `None` if it is gone already.
    pub(crate) async fn watch(&self, sibling: &str) -> Result<Option<OneshotWatcher>, Error> {
        let path = format!("{}/{sibling}", parent_of(&self.path));
        let (found, event) = repeat_until_answered(|| self.client.check_and_watch_stat(&path)).await.map_err(unavailable)?;
        Ok(found.map(|_| event))
    }
}

/// Deletes a node, asking until ZooKeeper answers. Returns whether the lock was still held; `None`, logged, after any error
/// but a missing node or an ended session.
async fn delete_node(client: Client, path: String) -> Option<LockState> {
    let tries = AtomicU32::new(0);
    let deleted = repeat_until_answered(|| {
        tries.fetch_add(1, Ordering::Relaxed);
        client.delete(&path, None)
    });
    match deleted.await {
        Ok(()) => Some(LockState::Kept),
        // An earlier attempt deleted it, and the answer was lost.
        Err(Zk::NoNode) if tries.load(Ordering::Relaxed) > 1 => Some(LockState::Kept),
        Err(Zk::NoNode | Zk::SessionExpired) => {
            tracing::warn!(path, "the lock was lost before the unlock");
            Some(LockState::Lost)
        }
        Err(error) => {
            tracing::warn!(%error, path, "the node was not deleted; it ends with its session");
            None
        }
    }
}

/// Repeats an idempotent request whose answer was lost with the connection, without a limit of its own. The client holds the
/// next one until it has reconnected.
pub(crate) async fn repeat_until_answered<T, F>(request: impl Fn() -> F) -> Result<T, Zk>
where
    F: Future<Output = Result<T, Zk>>,
{
    loop {
        match request().await {
            Err(Zk::ConnectionLoss | Zk::SessionMoved | Zk::Custom(_)) => {}
            answered => return answered,
        }
    }
}

/// The path without its last part; empty if it has no slash.
fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Converts an error of ZooKeeper: the server is not available.
pub(crate) fn unavailable(error: Zk) -> Error {
    Error::unavailable(Server::ZooKeeper, error)
}
