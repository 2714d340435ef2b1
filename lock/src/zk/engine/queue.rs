//! The queue that Curator's recipes share: numbered nodes in one directory, and a rule that says for whom each waits.
//!
//! 1. Make an ephemeral sequential node.
//! 2. Where another contender of this process stands before us, wait until its turn has come: ours is not before that,
//!    and the server is not asked in between.
//! 3. Find the nodes before ours: list the directory, unless that was done since our node was made. One listing serves all
//!    of this process who came before it.
//! 4. Where the rule finds no node before ours, and our own node is there, it is our turn.
//! 5. Otherwise watch the nearest one that we wait for, and no other: with a watch on the directory every hand-off
//!    would wake every waiter (the herd effect).
//! 6. When the watch fires, go back to 4, with a look at the few that may have gone meanwhile. That it fired does not
//!    mean that it is our turn: the one before us may have given up waiting, and the one before *it* still be inside.
//!
//! Why a listing serves for so long: numbers only grow, so that nobody comes before us who was not there when our node was
//! made, and what has gone does not come back. One exception: a writer that reads leaves a reader at its own number; a
//! rule that this concerns lists again ([`Recipe::lists_again`]).
//!
//! So order of service is the order of the numbers over all processes, and a section costs a few requests and one
//! notification, however many wait.
//!
//! What it survives: a contender that dies (its session ends, and its node with it), a lost connection, a server
//! restart, the directory or nodes in it being deleted. **What breaks it**: a holder that is paused beyond its session;
//! 2^31 nodes in one directory, where the server's numbers wrap around to below all others: a request that gets such a number is refused.
//!
//! Next to read: `node.rs`.

use super::{
    Wait, failed, insist, node::Node, over, request::ask, session::Session, unless, valid,
};
use crate::{
    Fence, Holder, LockError,
    registry::{Registration, Registry},
    zk::ZkClient,
};
use futures::future::try_join_all;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Error, EventType};

/// Where more than so many may have gone, one listing costs less than to ask for each.
const LOOKS: usize = 16;

/// What makes a recipe out of the queue.
#[derive(Debug)]
pub(in crate::zk) struct Recipe {
    /// Ends the fixed part of a node's name, as `lock-`; the number follows.
    pub(in crate::zk) marker: &'static str,
    /// The markers of all that stand in the same queue.
    pub(in crate::zk) markers: &'static [&'static str],
    /// Whether a node of this name is waited for where it is before ours.
    pub(in crate::zk) waits_for: fn(name: &str) -> bool,
    /// Whether a node that goes may have left another one at its place.
    pub(in crate::zk) lists_again: bool,
    /// Whether several may hold it together.
    pub(in crate::zk) shared: bool,
}

/// A contender whose turn it is.
#[derive(Debug)]
pub(in crate::zk) struct Turn {
    pub(in crate::zk) node: Node,
    pub(in crate::zk) fence: Fence,
}

enum Attempt {
    Turn(Turn),
    /// The wait was over first; the node is deleted.
    Late,
    /// Somebody deleted our node.
    Gone,
    /// The server's numbers have wrapped around.
    UsedUp,
}

/// Waits for its turn in the queue of `directory`.
///
/// # Errors
///
/// [`LockError::Taken`], [`LockError::Unavailable`], [`LockError::Invalid`].
///
/// # Cancel safety
///
/// Safe: the node is deleted in the background.
pub(in crate::zk) async fn turn(
    zk: &ZkClient,
    recipe: &Recipe,
    directory: &str,
    wait: Wait,
) -> Result<Turn, LockError> {
    valid(directory)?;
    loop {
        let session = zk.connected(wait.end).await?;
        let queues = session.shared.of::<Registry<Key, Queue>>();
        let key = (directory.to_owned(), recipe.markers);
        let queue = queues.of(&key, |registration| Queue::new(&key, registration));
        match zk
            .answered(wait, attempt(session, &queue, recipe, wait))
            .await?
        {
            Ok(Attempt::Turn(turn)) => return Ok(turn),
            Ok(Attempt::Gone) if Instant::now() < wait.end => {
                tracing::debug!(directory, "our node was deleted: queueing again");
            }
            Ok(Attempt::Gone | Attempt::Late) => return Err(zk.late(wait, directory)),
            Ok(Attempt::UsedUp) => {
                let rule =
                    "its directory's numbers are used up: it must be deleted when nobody uses it";
                return Err(LockError::invalid(directory, rule));
            }
            Err(error) if over(&error) => tracing::debug!(%error, directory, "queueing again"),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// One try, in one session.
async fn attempt(
    session: Arc<Session>,
    queue: &Arc<Queue>,
    recipe: &Recipe,
    wait: Wait,
) -> Result<Attempt, Error> {
    let mut node = Node::sequential(session.clone(), &queue.directory, recipe.marker);
    let fence = node.create().await?;
    let own = Place::of(node.name(), recipe.markers);
    if !own.is_sound() {
        return Ok(Attempt::UsedUp);
    }
    let mut since = Instant::now();
    let mut seen = false;
    let standing = queue.stand(&own);
    loop {
        if let Some(before) = queue.own_before(&own, recipe) {
            if timeout_at(wait.end, before.cancelled()).await.is_err() {
                break;
            }
            seen = false;
            continue;
        }
        seen |= queue.list_after(since, &session).await?;
        let Some(before) = queue.before(&own, recipe) else {
            return Ok(Attempt::Gone);
        };
        let Some(nearest) = before.first() else {
            if !seen && insist(|| session.check_stat(&node.path())).await?.is_none() {
                return Ok(Attempt::Gone);
            }
            queue.is_the_turn_of(&own, recipe);
            drop(standing);
            return Ok(Attempt::Turn(Turn { node, fence }));
        };
        // Whatever comes now comes after the listing, and our node may have gone since.
        seen = false;
        // Not `exists`: that leaves a watch behind where the node has gone meanwhile.
        let path = queue.path(nearest);
        match insist(|| session.get_and_watch_data(&path)).await {
            Ok((_, _, watch)) => {
                let Ok(event) = timeout_at(wait.end, watch.changed()).await else {
                    break;
                };
                if event.event_type != EventType::NodeDeleted {
                    continue;
                }
            }
            Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
        queue.gone([nearest]);
        if recipe.lists_again || before.len() > LOOKS {
            since = Instant::now();
        } else {
            queue.look_at(&before[1..], &session).await?;
        }
    }
    timeout(session.timeout, node.delete(None)).await.ok();
    Ok(Attempt::Late)
}

/// The names in a directory; none where it is not there.
async fn list(session: &Session, directory: &str) -> Result<Vec<String>, Error> {
    Ok(unless(&[Error::NoNode], session.list_children(directory).await)?.unwrap_or_default())
}

/// Whose turn it is in a directory's queue, or was a moment ago.
pub(in crate::zk) async fn first(
    session: &Session,
    directory: &str,
    markers: &[&str],
) -> Result<Option<String>, Error> {
    Ok(list(session, directory)
        .await?
        .into_iter()
        .min_by_key(|name| Place::of(name, markers)))
}

/// The same, with what stands in the node.
pub(in crate::zk) async fn holder(
    zk: &ZkClient,
    directory: &str,
    markers: &[&str],
) -> Result<Option<Holder>, LockError> {
    ask(zk, directory, |session| async move {
        while let Some(name) = first(&session, directory, markers).await? {
            let data = session.get_data(&format!("{directory}/{name}")).await;
            if let Some((data, _)) = unless(&[Error::NoNode], data)? {
                let id = format!("{name} {}", String::from_utf8_lossy(&data))
                    .trim_end()
                    .to_owned();
                return Ok(Some(Holder {
                    id,
                    remaining: None,
                }));
            }
        }
        Ok(None)
    })
    .await
}

/// A node's place: by what follows the last marker in its name, as Curator orders them. One without a marker, which is
/// no contender of ours, stands by its whole name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    number: String,
    name: String,
}

impl Place {
    fn of(name: &str, markers: &[&str]) -> Self {
        let ends = markers
            .iter()
            .filter_map(|marker| Some(name.rfind(marker)? + marker.len()));
        Self {
            number: name[ends.max().unwrap_or(0)..].to_owned(),
            name: name.to_owned(),
        }
    }

    /// After 2^31 - 1 the server goes on with numbers below 0, which sort before all others.
    fn is_sound(&self) -> bool {
        !self.number.starts_with('-')
    }
}

/// Locks of two kinds in one directory are two locks: each takes the other's nodes for strangers.
type Key = (String, &'static [&'static str]);

/// What this process knows of one directory.
#[derive(Debug)]
pub(super) struct Queue {
    directory: String,
    markers: &'static [&'static str],
    /// When the last listing was asked for. They are made one after the other, so that none is older than the one before.
    listed: tokio::sync::Mutex<Option<Instant>>,
    view: Mutex<View>,
    _registration: Registration,
}

#[derive(Debug, Default)]
struct View {
    /// The last listing, without what has gone since as far as we know.
    nodes: BTreeSet<Place>,
    /// The contenders of this process whose turn has not come, each with what tells that it has, or that they left.
    own: BTreeMap<Place, CancellationToken>,
}

/// A contender of this process, until its turn has come or it leaves.
struct Standing {
    queue: Arc<Queue>,
    place: Place,
}

impl Queue {
    fn new((directory, markers): &Key, registration: Registration) -> Self {
        Self {
            directory: directory.clone(),
            markers,
            listed: tokio::sync::Mutex::default(),
            view: Mutex::default(),
            _registration: registration,
        }
    }

    fn stand(self: &Arc<Self>, place: &Place) -> Standing {
        self.view
            .lock()
            .own
            .insert(place.clone(), CancellationToken::new());
        Standing {
            queue: self.clone(),
            place: place.clone(),
        }
    }

    /// The nearest contender of this process that `own` waits for.
    fn own_before(&self, own: &Place, recipe: &Recipe) -> Option<CancellationToken> {
        let view = self.view.lock();
        let mut before = view.own.range(..own).rev();
        before
            .find(|(place, _)| (recipe.waits_for)(&place.name))
            .map(|(_, turn)| turn.clone())
    }

    /// Makes sure that a listing was answered that was asked for after `since`, so that what was there then is in it;
    /// whether it was done just now.
    async fn list_after(&self, since: Instant, session: &Session) -> Result<bool, Error> {
        let mut listed = self.listed.lock().await;
        if *listed > Some(since) {
            return Ok(false);
        }
        let asked = Instant::now();
        let children = insist(|| list(session, &self.directory)).await?;
        self.view.lock().nodes = children
            .iter()
            .map(|name| Place::of(name, self.markers))
            .collect();
        *listed = Some(asked);
        Ok(true)
    }

    /// The nearest of those whom `own` waits for; nothing where `own` itself is not there.
    fn before(&self, own: &Place, recipe: &Recipe) -> Option<Vec<Place>> {
        let view = self.view.lock();
        if !view.nodes.contains(own) {
            return None;
        }
        let before = view
            .nodes
            .range(..own)
            .rev()
            .filter(|place| (recipe.waits_for)(&place.name));
        Some(before.take(LOOKS + 1).cloned().collect())
    }

    /// Forgets those of them that have gone.
    async fn look_at(&self, some: &[Place], session: &Session) -> Result<(), Error> {
        let looks = some.iter().map(async |place| {
            let path = self.path(place);
            let there = insist(|| session.check_stat(&path)).await?.is_some();
            Ok::<_, Error>((!there).then_some(place))
        });
        self.gone(try_join_all(looks).await?.into_iter().flatten());
        Ok(())
    }

    fn gone<'a>(&self, gone: impl IntoIterator<Item = &'a Place>) {
        let mut view = self.view.lock();
        for place in gone {
            view.nodes.remove(place);
        }
    }

    /// All that `own` has waited for have gone.
    fn is_the_turn_of(&self, own: &Place, recipe: &Recipe) {
        let waits = |place: &&Place| (recipe.waits_for)(&place.name);
        let before: Vec<_> = self
            .view
            .lock()
            .nodes
            .range(..own)
            .filter(waits)
            .cloned()
            .collect();
        self.gone(&before);
    }

    fn path(&self, place: &Place) -> String {
        format!("{}/{}", self.directory, place.name)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some(turn) = self.queue.view.lock().own.remove(&self.place) {
            turn.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_ordered_by_what_follows_the_last_marker_and_not_by_their_uuid() {
        // Markers: names in order; one without a marker stands by all of its name.
        let orders = "
            lock-: _c_z-lock-0000000003 _c_m-lock-0000000004 _c_a-lock-0000000012
            lock-: _c_a-lock-0000000000 lock-9-lock-0000000001
            lock-: 0000000004 _c_a-lock-0000000005 stranger
            __READ__ __WRIT__: _c_b-__READ__0000000001 _c_a-__WRIT__0000000002 _c_c-__READ__0000000003";
        for order in orders.trim().lines() {
            let (markers, ordered) = order.split_once(':').unwrap();
            let [markers, ordered] =
                [markers, ordered].map(|words| words.split_whitespace().collect::<Vec<_>>());
            let mut names: Vec<_> = ordered.iter().rev().copied().collect();
            names.sort_by_key(|name| Place::of(name, &markers));
            assert_eq!(names, ordered);
        }
    }

    /// The server counts in 31 bits, and writes `%010d`.
    #[test]
    fn a_number_that_has_begun_anew_is_no_place() {
        let last = Place::of("_c_a-lock-2147483647", &["lock-"]);
        let next = Place::of("_c_b-lock--2147483648", &["lock-"]);
        assert!(
            last.is_sound() && next < last,
            "it would be first, beside the holder"
        );
        assert!(!next.is_sound());
    }
}
