//! The queue that Curator's recipes share: sequential nodes in one directory, and a rule that says whom each waits for.
//!
//! 1. Make an ephemeral sequential node.
//! 2. List the directory. Where the rule says that nobody is before us, it is our turn.
//! 3. Otherwise watch the one node that we wait for, and no other: with a watch on the directory every hand-off
//!    would wake every waiter (the herd effect).
//! 4. When the watch fires, go back to 2. That it fired does not mean that it is our turn: the one before us may have
//!    given up waiting, and the one before *it* still be inside.
//!
//! What it survives: a contender that dies (its session ends, and its node with it), a lost connection, a server
//! restart, the directory being deleted. **What breaks it**: a holder that is paused beyond its session.
//!
//! Next to read: `hold.rs`.

use super::{ZkClient, insist, node::Node, over, unavailable};
use crate::{Fence, LockError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use zookeeper_client::{Client, Error};

/// How long an answer is waited for once the wait is over or the lock is given back. The rest goes on in the
/// background.
pub(super) const ANSWER: Duration = Duration::from_secs(2);

/// What makes a recipe out of the queue.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Ends the fixed part of a node's name, as `lock-`; the sequence follows.
    pub(super) marker: &'static str,
    /// The markers of all that stand in the same queue.
    pub(super) markers: &'static [&'static str],
    /// Which of the nodes, in their order, number `own` has to wait for.
    pub(super) waits_for: fn(ordered: &[&str], own: usize) -> Option<usize>,
}

/// A contender whose turn it is.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) node: Node,
    pub(super) fence: Fence,
}

#[expect(clippy::large_enum_variant, reason = "moved once, never stored")]
enum Attempt {
    Turn(Node, Fence),
    /// The wait was over first; the node is deleted.
    Late,
    /// Somebody deleted our node.
    Gone,
}

/// Waits for its turn in the queue of `directory`, at most `wait`.
///
/// # Errors
///
/// [`LockError::Taken`], [`LockError::Unavailable`].
///
/// # Cancel safety
///
/// Safe: the node is deleted in the background.
pub(super) async fn turn(zk: &ZkClient, recipe: &Recipe, directory: &str, wait: Duration) -> Result<Turn, LockError> {
    let deadline = deadline(wait);
    let taken = || LockError::Taken { name: directory.to_owned(), waited: wait };
    loop {
        let client = zk.connected(deadline).await?;
        let attempt = tokio::select! {
            biased;
            attempt = attempt(zk, client, recipe, directory, deadline) => attempt,
            error = zk.given_up() => return Err(error),
        };
        match attempt {
            Ok(Attempt::Turn(node, fence)) => return Ok(Turn { node, fence }),
            Ok(Attempt::Late) => return Err(zk.session().err().unwrap_or_else(taken)),
            Ok(Attempt::Gone) => tracing::debug!(directory, "our node was deleted: queueing anew"),
            Err(error) if over(&error) => tracing::debug!(%error, directory, "queueing anew"),
            Err(error) => return Err(unavailable(error)),
        }
    }
}

/// One try, in one session.
async fn attempt(
    zk: &ZkClient,
    client: Client,
    recipe: &Recipe,
    directory: &str,
    deadline: Instant,
) -> Result<Attempt, Error> {
    let mut node = Node::new(client, directory, recipe.marker, zk.tasks());
    let fence = node.create().await?;
    loop {
        let children = match insist(|| node.client().list_children(directory)).await {
            Err(Error::NoNode) => return Ok(Attempt::Gone),
            children => children?,
        };
        let ordered = in_order(&children, recipe.markers);
        let Some(own) = ordered.iter().position(|name| *name == node.name()) else {
            return Ok(Attempt::Gone);
        };
        let Some(before) = (recipe.waits_for)(&ordered, own) else {
            return Ok(Attempt::Turn(node, fence));
        };
        // Not `exists`: that leaves a watch behind where the node has gone meanwhile.
        let path = format!("{directory}/{}", ordered[before]);
        let watch = match insist(|| node.client().get_and_watch_data(&path)).await {
            Ok((_, _, watch)) => watch,
            Err(Error::NoNode) => continue,
            Err(error) => return Err(error),
        };
        if timeout_at(deadline, watch.changed()).await.is_err() {
            timeout(ANSWER, node.delete()).await.ok();
            return Ok(Attempt::Late);
        }
    }
}

/// A directory's nodes in the order of the queue: by what follows the last marker in the name, as Curator orders
/// them. One without a marker, which is no contender of ours, sorts by its whole name.
pub(super) fn in_order<'a>(children: &'a [String], markers: &[&str]) -> Vec<&'a str> {
    let after = |name: &'a str, marker: &str| name.rsplit_once(marker).map_or(name, |(_, sequence)| sequence);
    let key = |name: &'a str| markers.iter().fold(name, |name, marker| after(name, marker));
    let mut ordered: Vec<_> = children.iter().map(String::as_str).collect();
    ordered.sort_unstable_by_key(|name| (key(name), *name));
    ordered
}

/// The end of a wait that begins now, also where it is too long for a clock.
pub(super) fn deadline(wait: Duration) -> Instant {
    const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    let now = Instant::now();
    now.checked_add(wait.min(FOR_EVER)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(children: &[String]) -> Vec<&str> {
        in_order(children, &["lock-"])
    }

    #[test]
    fn nodes_are_ordered_by_their_sequence_and_not_by_their_uuid() {
        let children = ["_c_a-lock-0000000012", "_c_z-lock-0000000003", "_c_m-lock-0000000004"].map(String::from);
        assert_eq!(ordered(&children), ["_c_z-lock-0000000003", "_c_m-lock-0000000004", "_c_a-lock-0000000012"]);
    }

    #[test]
    fn only_the_last_marker_counts() {
        let children = ["lock-9-lock-0000000001", "_c_a-lock-0000000000"].map(String::from);
        assert_eq!(ordered(&children), ["_c_a-lock-0000000000", "lock-9-lock-0000000001"]);
    }

    #[test]
    fn a_name_without_a_marker_sorts_by_all_of_it() {
        let children = ["_c_a-lock-0000000005", "0000000004", "stranger"].map(String::from);
        assert_eq!(ordered(&children), ["0000000004", "_c_a-lock-0000000005", "stranger"]);
    }

    #[test]
    fn readers_and_writers_stand_in_one_order() {
        let children =
            ["_c_a-__WRIT__0000000002", "_c_b-__READ__0000000001", "_c_c-__READ__0000000003"].map(String::from);
        let ordered = in_order(&children, &["__READ__", "__WRIT__"]);
        assert_eq!(ordered, ["_c_b-__READ__0000000001", "_c_a-__WRIT__0000000002", "_c_c-__READ__0000000003"]);
    }

    #[test]
    fn a_wait_without_end_is_not_too_long_for_the_clock() {
        assert!(deadline(Duration::MAX) > Instant::now());
    }
}
