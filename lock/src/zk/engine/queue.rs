//! The queue that Curator's recipes share: numbered nodes in one directory, and a rule that says which nodes each waits for.
//!
//! 1. Create an ephemeral sequential node.
//! 2. While another waiter of this process is before ours, wait for it, without requests to the server.
//! 3. List the directory, unless that was done since our node was created. One listing serves all contenders of this
//!    process that came before it.
//! 4. If no node that we wait for is before ours, and our own node is there, it is our turn.
//! 5. If the nearest one is this process's own, its [`LineMember`](super::queue_view::LineMember) reports when it has
//!    gone, without a request: its deletion has checked our node in the same transaction. Back to 4.
//! 6. Otherwise watch it, and no other: a watch on the directory would wake every waiter at every hand-off (the herd
//!    effect). When the watch fires, go back to 4, with one request for our own node and the few that may have gone. It
//!    may not be our turn yet: the one before us may have given up while the one before *it* is still inside.
//!
//! A listing stays valid (`queue_view.rs` says why), with one exception: a writer that reads leaves a reader at its own
//! number. Rules that this concerns list again ([`Recipe::lists_again`]).
//!
//! So contenders are served in the order of their numbers over all processes. A section costs two requests (create and
//! delete) if the previous holder was this process's, and two more if not, however many wait.
//!
//! **What breaks it**: 2^31 nodes in one directory, where the server's numbers wrap around: such a request is refused.
//! What breaks the locks on top of it is said at their types.
//!
//! Next to read: `queue_view.rs`.

use super::{
    Wait, check_path, errors_to_none, is_session_over,
    node::Node,
    queue_view::{ContenderState, MAX_CHECKS, NodePlace, Predecessor, QueueKey, QueueView, WaitsFor, list_nodes},
    repeat_until_answered,
    request::repeat_request,
    session::Session,
    to_lock_error,
};
use crate::{Fence, Holder, LockError, reentry::HoldKind, registry::Registry, zk::ZkClient};
use std::{collections::BTreeSet, sync::Arc};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use zookeeper_client::{Error, EventType};

/// The recipe of one kind of lock: how its nodes are named, and which of those before its own each contender waits for. Each
/// kind has one constant.
#[derive(Debug)]
pub(in crate::zk) struct Recipe {
    /// The kind of lock in its events: the name of its type.
    pub(in crate::zk) kind: &'static str,
    /// The end of the fixed part of a node's name, as `lock-`; the number follows.
    pub(in crate::zk) marker: &'static str,
    /// The markers of all nodes in the same queue.
    pub(in crate::zk) markers: &'static [&'static str],
    pub(in crate::zk) waits_for: WaitsFor,
    /// Whether a node that goes may leave another node at its place, so that an old listing is wrong.
    pub(in crate::zk) lists_again: bool,
    pub(in crate::zk) hold_kind: HoldKind,
}

/// A node whose turn it is, and its fencing token.
#[derive(Debug)]
pub(in crate::zk) struct FencedNode {
    pub(in crate::zk) node: Node,
    pub(in crate::zk) fence: Fence,
}

/// How the wait of one node has ended: its turn, too late, its node gone, or no numbers left. The end of the session is an
/// error instead.
enum QueueOutcome {
    First(FencedNode),
    /// The wait ended before the turn came; the node is deleted.
    TimedOut,
    /// Somebody deleted our node.
    NodeGone,
    /// The server's numbers have wrapped around.
    NumbersUsedUp,
}

/// Makes a node in `directory` and waits for its turn; queues again, at the end, if the session ends or somebody deletes the
/// node.
///
/// # Errors
///
/// [`LockError::Taken`], [`LockError::Unavailable`], [`LockError::Refused`]; [`LockError::Invalid`] for the path, or if the
/// directory's numbers are used up.
///
/// # Cancel safety
///
/// Safe: the node is deleted in the background.
pub(in crate::zk) async fn queue_and_wait(
    zk: &ZkClient,
    recipe: &Recipe,
    directory: &str,
    wait: Wait,
) -> Result<FencedNode, LockError> {
    check_path(directory)?;
    loop {
        let session = zk.live_session(wait.end).await?;
        let queues = session.shared.of::<Registry<QueueKey, QueueView>>();
        let key = (directory.to_owned(), recipe.markers);
        let queue = queues.get_or_make(&key, |registration| QueueView::new(&key, registration));
        match zk.while_alive(wait, queue_once(session, &queue, recipe, wait)).await? {
            Ok(QueueOutcome::First(turn)) => return Ok(turn),
            Ok(QueueOutcome::NodeGone) if Instant::now() < wait.end => {
                tracing::debug!(directory, "our node was deleted: queueing again");
            }
            Ok(QueueOutcome::NodeGone | QueueOutcome::TimedOut) => {
                return Err(zk.not_acquired_error(wait, directory));
            }
            Ok(QueueOutcome::NumbersUsedUp) => {
                let rule = "its directory's numbers are used up: it must be deleted when nobody uses it";
                return Err(LockError::invalid(directory, rule));
            }
            Err(error) if is_session_over(&error) => {
                tracing::debug!(%error, directory, "the session ended: queueing again");
            }
            Err(error) => return Err(to_lock_error(error)),
        }
    }
}

/// Makes a node and waits for its turn, within one session; deletes it if the wait ended first.
async fn queue_once(session: Arc<Session>, queue: &Arc<QueueView>, recipe: &Recipe, wait: Wait) -> Result<QueueOutcome, Error> {
    let mut node = Node::sequential(session.clone(), &queue.root, recipe.marker);
    let fence = node.create().await?;
    let own = NodePlace::of(node.name(), recipe.markers);
    if !own.is_valid() {
        return Ok(QueueOutcome::NumbersUsedUp);
    }
    node.join_line(queue.join(&own));
    let waiter = QueueWaiter { session, queue, recipe, own, end: wait.end };
    match waiter.wait_until_first().await? {
        QueueWaitEnd::First => {
            node.report_turn();
            Ok(QueueOutcome::First(FencedNode { node, fence }))
        }
        QueueWaitEnd::TimedOut => {
            timeout(waiter.session.timeout, node.delete(None)).await.ok();
            Ok(QueueOutcome::TimedOut)
        }
        QueueWaitEnd::NodeGone => Ok(QueueOutcome::NodeGone),
    }
}

/// How a wait in the queue has ended: our node is first, the time is up, or our node has gone.
enum QueueWaitEnd {
    First,
    TimedOut,
    NodeGone,
}

/// A contender whose node is in the queue.
struct QueueWaiter<'a> {
    session: Arc<Session>,
    queue: &'a QueueView,
    recipe: &'a Recipe,
    own: NodePlace,
    end: Instant,
}

impl QueueWaiter<'_> {
    /// Waits until no node that it waits for is before its own.
    async fn wait_until_first(&self) -> Result<QueueWaitEnd, Error> {
        let (queue, own) = (self.queue, &self.own);
        let mut since = Instant::now();
        // Whether our node was there when the last listing was made, or later.
        let mut seen = false;
        loop {
            if let Some(mut before) = queue.own_waiter_before(own, self.recipe.waits_for) {
                if !self.wait_for_change(&mut before).await? {
                    return Ok(QueueWaitEnd::TimedOut);
                }
                seen = false;
                continue;
            }
            seen |= queue.ensure_listed_since(since, &self.session).await?;
            match queue.predecessor_of(own, self.recipe.waits_for) {
                None => return Ok(QueueWaitEnd::NodeGone),
                Some(Predecessor::Nobody) => {
                    if !seen && !self.forget_gone_and_check_own(&[]).await? {
                        return Ok(QueueWaitEnd::NodeGone);
                    }
                    queue.forget_before(own, self.recipe.waits_for);
                    return Ok(QueueWaitEnd::First);
                }
                Some(Predecessor::Own(mut before)) => {
                    if !self.wait_for_change(&mut before).await? {
                        return Ok(QueueWaitEnd::TimedOut);
                    }
                    seen = matches!(&*before.borrow(), ContenderState::Gone { seen: Some(next) } if next == own);
                    if self.recipe.lists_again {
                        since = Instant::now();
                    }
                }
                Some(Predecessor::Others(others)) => {
                    // From here on our node may have gone since the last listing.
                    seen = false;
                    match self.wait_until_node_gone(&others[0]).await? {
                        None => return Ok(QueueWaitEnd::TimedOut),
                        Some(false) => continue,
                        Some(true) => queue.forget_nodes([&others[0]]),
                    }
                    if self.recipe.lists_again || others.len() > MAX_CHECKS {
                        since = Instant::now();
                    } else if self.forget_gone_and_check_own(&others[1..]).await? {
                        seen = true;
                    } else {
                        return Ok(QueueWaitEnd::NodeGone);
                    }
                }
            }
        }
    }

    /// Waits for a change of one of this process's contenders; `false` if the wait ended first.
    async fn wait_for_change(&self, before: &mut watch::Receiver<ContenderState>) -> Result<bool, Error> {
        tokio::select! {
            biased;
            _ = before.changed() => Ok(true),
            () = self.session.over.cancelled() => Err(Error::SessionExpired),
            () = sleep_until(self.end) => Ok(false),
        }
    }

    /// Watches another process's node; `Some(true)` if it has gone, `Some(false)` after another change, `None` if the wait
    /// ended first.
    async fn wait_until_node_gone(&self, other: &NodePlace) -> Result<Option<bool>, Error> {
        // `exists` would leave a watch behind if the node has gone.
        let path = self.queue.node_path(other);
        match repeat_until_answered(|| self.session.get_and_watch_data(&path)).await {
            Ok((_, _, watch)) => {
                let event = timeout_at(self.end, watch.changed()).await.ok();
                Ok(event.map(|event| event.event_type == EventType::NodeDeleted))
            }
            Err(Error::NoNode) => Ok(Some(true)),
            Err(error) => Err(error),
        }
    }

    /// Asks for the nodes of `others` and our own; forgets the others that have gone, and returns whether our own is there.
    async fn forget_gone_and_check_own(&self, others: &[NodePlace]) -> Result<bool, Error> {
        let places = others.iter().chain([&self.own]);
        let paths: Vec<_> = places.map(|place| self.queue.node_path(place)).collect();
        let there = self.session.stats(&paths).await?;
        let gone = others.iter().zip(&there).filter(|(_, there)| there.is_none());
        self.queue.forget_nodes(gone.map(|(place, _)| place));
        Ok(there.last().is_some_and(Option::is_some))
    }
}

/// Returns the name of the first node in a directory's queue, as of a moment ago; `None` if there is none.
pub(in crate::zk) async fn first_node(session: &Session, directory: &str, markers: &[&str]) -> Result<Option<String>, Error> {
    Ok(list_nodes(session, directory).await?.into_iter().min_by_key(|name| NodePlace::of(name, markers)))
}

/// Returns the first node's name with its data, and no lease; `None` if there is no node.
pub(in crate::zk) async fn holder(zk: &ZkClient, directory: &str, markers: &[&str]) -> Result<Option<Holder>, LockError> {
    repeat_request(zk, directory, |session| async move {
        while let Some(name) = first_node(&session, directory, markers).await? {
            let data = session.get_data(&format!("{directory}/{name}")).await;
            if let Some((data, _)) = errors_to_none(&[Error::NoNode], data)? {
                let id = format!("{name} {}", String::from_utf8_lossy(&data)).trim_end().to_owned();
                return Ok(Some(Holder { id, remaining: None }));
            }
        }
        Ok(None)
    })
    .await
}

/// Deletes the nodes of all that hold the lock by this recipe; returns whether there were any.
pub(in crate::zk) async fn force_unlock(zk: &ZkClient, recipe: &Recipe, directory: &str) -> Result<bool, LockError> {
    // Lists only once, even after a lost answer: a second listing would show the next holder, which would be deleted too.
    let names = repeat_request(zk, directory, |session| async move { list_nodes(&session, directory).await }).await?;
    let held = holding_nodes(&names, recipe);
    for name in &held {
        repeat_request(zk, directory, |session| async move {
            let path = format!("{directory}/{name}");
            errors_to_none(&[Error::NoNode], session.delete(&path, None).await)
        })
        .await?;
    }
    Ok(!held.is_empty())
}

/// The nodes that hold the lock by this recipe: of readers, all before the first writer; of a lock that is held alone, all
/// at the first number, because a writer that reads has a reader's node at its own number. None if the other half holds it.
fn holding_nodes(names: &[String], recipe: &Recipe) -> Vec<String> {
    let places = names.iter().map(|name| NodePlace::of(name, recipe.markers));
    let places: BTreeSet<_> = places.collect();
    let until = |number: Option<&str>| {
        let before = places.iter().take_while(move |place| Some(&*place.number) != number);
        before.map(|place| place.name.clone()).collect::<Vec<_>>()
    };
    if recipe.hold_kind == HoldKind::Shared {
        let writer = places.iter().find(|place| (recipe.waits_for)(&place.name));
        return until(writer.map(|writer| &*writer.number));
    }
    let first = places.first().map(|place| &*place.number);
    let second = places.iter().find(|place| Some(&*place.number) != first);
    let held = until(second.map(|second| &*second.number));
    let alone = held.iter().any(|name| name.contains(recipe.marker));
    if alone { held } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlock_frees_the_holders_and_no_waiter() {
        const WRITE: Recipe = Recipe {
            kind: "ZkWriteLock",
            marker: "W-",
            markers: &["R-", "W-"],
            waits_for: |_| true,
            lists_again: true,
            hold_kind: HoldKind::Exclusive,
        };
        const READ: Recipe = Recipe { marker: "R-", waits_for: |name| name.contains("W-"), hold_kind: HoldKind::Shared, ..WRITE };
        // The queue; the nodes that a reader's and a writer's `force_unlock` deletes.
        for (queue, readers, writers) in [
            ("", "", ""),
            ("b-R-1 a-R-2 c-W-3 d-R-4", "b-R-1 a-R-2", ""),
            ("b-W-1 a-R-2", "", "b-W-1"),
            ("a-R-1 b-W-1 c-R-2", "", "a-R-1 b-W-1"),
            ("c-W-1 d-R-1 a-W-2", "", "c-W-1 d-R-1"),
        ] {
            let names: Vec<_> = queue.split_whitespace().rev().map(String::from).collect();
            let freed = [READ, WRITE].map(|recipe| holding_nodes(&names, &recipe).join(" "));
            assert_eq!(freed, [readers, writers], "{queue}");
        }
    }
}
