//! The queue that Curator's recipes share: numbered nodes in one directory, and a rule that says for whom each waits.
//!
//! 1. Make an ephemeral sequential node.
//! 2. Where another waiter of this process is before us, wait until its turn has come: ours is not before that, and the
//!    server is not asked in between.
//! 3. Find the nodes before ours: list the directory, unless that was done since our node was made. One listing serves all
//!    of this process who came before it.
//! 4. Where the rule finds no node before ours, and our own node is there, it is our turn.
//! 5. Where the nearest one that we wait for is this process's own, its [`InLine`] tells us that it has gone: the server is
//!    not asked. Its deletion has asked whether our node is there, in one transaction. Back to 4.
//! 6. Otherwise watch it, and no other: with a watch on the directory every hand-off would wake every waiter (the herd
//!    effect). When the watch fires, go back to 4, with one request for our own node and the few that may have gone
//!    meanwhile. That it fired does not mean that it is our turn: the one before us may have given up waiting, and the one
//!    before *it* still be inside.
//!
//! Why a listing serves for so long: numbers only grow, so that nobody comes before us who was not there when our node was
//! made, and what has gone does not come back. One exception: a writer that reads leaves a reader at its own number; a
//! rule that this concerns lists again ([`Recipe::lists_again`]).
//!
//! So order of service is the order of the numbers over all processes, and a section costs two requests (a node is made and
//! deleted) where the one before was this process's, and two more where it was not, however many wait.
//!
//! What it survives: a contender that dies (its session ends, and its node with it), a lost connection, a server
//! restart, the directory or nodes in it being deleted. **What breaks it**: a holder that is paused beyond its session;
//! 2^31 nodes in one directory, where the server's numbers wrap around to below all others: a request that gets such a number is refused.
//! Where somebody deletes a holder's node by hand, waiters of other processes come in beside it, and those of its own wait on.
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
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::{
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use zookeeper_client::{Error, EventType};

/// Where more than so many may have gone, a listing costs less than to ask for each.
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
    node.line_up(queue.line_up(&own));
    let waiter = Waiter {
        session,
        queue,
        recipe,
        own,
        end: wait.end,
    };
    match waiter.waits().await? {
        End::Turn => {
            node.comes_in();
            Ok(Attempt::Turn(Turn { node, fence }))
        }
        End::Late => {
            timeout(waiter.session.timeout, node.delete(None))
                .await
                .ok();
            Ok(Attempt::Late)
        }
        End::Gone => Ok(Attempt::Gone),
    }
}

/// What a wait in the queue comes to.
enum End {
    Turn,
    Late,
    Gone,
}

/// A contender whose node is in the queue.
struct Waiter<'a> {
    session: Arc<Session>,
    queue: &'a Queue,
    recipe: &'a Recipe,
    own: Place,
    end: Instant,
}

impl Waiter<'_> {
    async fn waits(&self) -> Result<End, Error> {
        let (queue, own) = (self.queue, &self.own);
        let mut since = Instant::now();
        // Whether our node was there at the last look, or at a later time.
        let mut seen = false;
        loop {
            if let Some(mut before) = queue.waits_before(own, self.recipe) {
                if !self.hears(&mut before).await? {
                    return Ok(End::Late);
                }
                seen = false;
                continue;
            }
            seen |= queue.list_after(since, &self.session).await?;
            match queue.before(own, self.recipe) {
                None => return Ok(End::Gone),
                Some(Before::Nobody) => {
                    if !seen && !self.look(&[]).await? {
                        return Ok(End::Gone);
                    }
                    queue.is_the_turn_of(own, self.recipe);
                    return Ok(End::Turn);
                }
                Some(Before::Own(mut before)) => {
                    if !self.hears(&mut before).await? {
                        return Ok(End::Late);
                    }
                    seen = matches!(&*before.borrow(), Stage::Gone { seen: Some(next) } if next == own);
                    if self.recipe.lists_again {
                        since = Instant::now();
                    }
                }
                Some(Before::Others(others)) => {
                    // Whatever comes now comes after the last look, and our node may have gone since.
                    seen = false;
                    match self.watch(&others[0]).await? {
                        None => return Ok(End::Late),
                        Some(false) => continue,
                        Some(true) => queue.gone([&others[0]]),
                    }
                    if self.recipe.lists_again || others.len() > LOOKS {
                        since = Instant::now();
                    } else if self.look(&others[1..]).await? {
                        seen = true;
                    } else {
                        return Ok(End::Gone);
                    }
                }
            }
        }
    }

    /// Waits for news of one of this process; `false` where the wait was over first.
    async fn hears(&self, before: &mut watch::Receiver<Stage>) -> Result<bool, Error> {
        tokio::select! {
            biased;
            _ = before.changed() => Ok(true),
            () = self.session.over.cancelled() => Err(Error::SessionExpired),
            () = sleep_until(self.end) => Ok(false),
        }
    }

    /// Watches one of another process, and says whether it has gone; nothing where the wait was over first.
    async fn watch(&self, other: &Place) -> Result<Option<bool>, Error> {
        // Not `exists`: that leaves a watch behind where the node has gone meanwhile.
        let path = self.queue.path(other);
        match insist(|| self.session.get_and_watch_data(&path)).await {
            Ok((_, _, watch)) => {
                let event = timeout_at(self.end, watch.changed()).await.ok();
                Ok(event.map(|event| event.event_type == EventType::NodeDeleted))
            }
            Err(Error::NoNode) => Ok(Some(true)),
            Err(error) => Err(error),
        }
    }

    /// Forgets those of `others` that have gone; `false` where our own node has.
    async fn look(&self, others: &[Place]) -> Result<bool, Error> {
        let places = others.iter().chain([&self.own]);
        let paths: Vec<_> = places.map(|place| self.queue.path(place)).collect();
        let there = self.session.stats(&paths).await?;
        let gone = others
            .iter()
            .zip(&there)
            .filter(|(_, there)| there.is_none());
        self.queue.gone(gone.map(|(place, _)| place));
        Ok(there.last().is_some_and(Option::is_some))
    }
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

/// Deletes the nodes of those who hold it, whoever they are; whether there were any.
pub(in crate::zk) async fn force_unlock(
    zk: &ZkClient,
    recipe: &Recipe,
    directory: &str,
) -> Result<bool, LockError> {
    // Not listed again after a lost answer: the next holder would go too.
    let names = ask(zk, directory, |session| async move {
        list(&session, directory).await
    })
    .await?;
    let held = holds(&names, recipe);
    for name in &held {
        ask(zk, directory, |session| async move {
            let path = format!("{directory}/{name}");
            unless(&[Error::NoNode], session.delete(&path, None).await)
        })
        .await?;
    }
    Ok(!held.is_empty())
}

/// Those who hold it by this recipe: the readers before the first writer, or all at the first number where one of them is a
/// holder alone. A writer that reads has a reader at its own number.
fn holds(names: &[String], recipe: &Recipe) -> Vec<String> {
    let places = names.iter().map(|name| Place::of(name, recipe.markers));
    let places: BTreeSet<_> = places.collect();
    let until = |number: Option<&str>| {
        let before = places
            .iter()
            .take_while(move |place| Some(&*place.number) != number);
        before.map(|place| place.name.clone()).collect::<Vec<_>>()
    };
    if recipe.shared {
        let writer = places.iter().find(|place| (recipe.waits_for)(&place.name));
        return until(writer.map(|writer| &*writer.number));
    }
    let first = places.first().map(|place| &*place.number);
    let second = places.iter().find(|place| Some(&*place.number) != first);
    let held = until(second.map(|second| &*second.number));
    let alone = held.iter().any(|name| name.contains(recipe.marker));
    if alone { held } else { Vec::new() }
}

/// A node's place: by what follows the last marker in its name, as Curator orders them. One without a marker, which is
/// no contender of ours, stands by its whole name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    number: String,
    pub(super) name: String,
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
    /// The contenders of this process whose nodes have not gone, holders included.
    line: BTreeMap<Place, watch::Receiver<Stage>>,
}

/// How far a contender of this process has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Waits,
    /// Its turn has come.
    In,
    /// Its node has gone. Whose node was there at that moment, of those who wait behind it in this process.
    Gone {
        seen: Option<Place>,
    },
}

/// Whom a contender waits for.
enum Before {
    Nobody,
    /// The nearest is this process's: what tells when it goes.
    Own(watch::Receiver<Stage>),
    /// The nearest is another's; it, and the next ones that are.
    Others(Vec<Place>),
}

/// A contender in the line of this process, from when its node was made. Whoever drops it before the node has gone leaves
/// it to those behind to find that out.
#[derive(Debug)]
pub(super) struct InLine {
    queue: Arc<Queue>,
    place: Place,
    stage: watch::Sender<Stage>,
}

impl InLine {
    /// Its turn has come.
    pub(super) fn comes_in(&self) {
        self.stage.send_replace(Stage::In);
    }

    /// The first waiter of this process behind it.
    pub(super) fn next(&self) -> Option<Place> {
        let view = self.queue.view.lock();
        let mut behind = view.line.range((Excluded(&self.place), Unbounded));
        let next = behind.find(|(_, stage)| *stage.borrow() == Stage::Waits);
        next.map(|(place, _)| place.clone())
    }

    /// Its node has gone, and that of `seen` was there at that moment.
    pub(super) fn gone(self, seen: Option<Place>) {
        self.queue.gone([&self.place]);
        self.leaves();
        self.stage.send_replace(Stage::Gone { seen });
    }

    fn leaves(&self) {
        self.queue.view.lock().line.remove(&self.place);
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        self.leaves();
    }
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

    fn line_up(self: &Arc<Self>, place: &Place) -> InLine {
        let (stage, told) = watch::channel(Stage::Waits);
        self.view.lock().line.insert(place.clone(), told);
        InLine {
            queue: self.clone(),
            place: place.clone(),
            stage,
        }
    }

    /// The nearest waiter of this process that `own` waits for.
    fn waits_before(&self, own: &Place, recipe: &Recipe) -> Option<watch::Receiver<Stage>> {
        let view = self.view.lock();
        let mut before = view.line.range(..own).rev();
        let waits = |stage: &watch::Receiver<Stage>| *stage.borrow() == Stage::Waits;
        let found = before.find(|(place, stage)| (recipe.waits_for)(&place.name) && waits(stage));
        found.map(|(_, stage)| stage.clone())
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

    /// Whom `own` waits for; nothing where `own` itself is not there.
    fn before(&self, own: &Place, recipe: &Recipe) -> Option<Before> {
        let view = self.view.lock();
        if !view.nodes.contains(own) {
            return None;
        }
        let waits_for = |place: &&Place| (recipe.waits_for)(&place.name);
        let mut before = view.nodes.range(..own).rev().filter(waits_for).peekable();
        let Some(nearest) = before.peek() else {
            return Some(Before::Nobody);
        };
        if let Some(stage) = view.line.get(*nearest) {
            let mut stage = stage.clone();
            // That it is in is known; what comes next is that it goes.
            stage.mark_unchanged();
            return Some(Before::Own(stage));
        }
        let others = before.filter(|place| !view.line.contains_key(*place));
        Some(Before::Others(others.take(LOOKS + 1).cloned().collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_hold_it_are_freed_and_nobody_behind_them() {
        const WRITE: Recipe = Recipe {
            marker: "W-",
            markers: &["R-", "W-"],
            waits_for: |_| true,
            lists_again: true,
            shared: false,
        };
        const READ: Recipe = Recipe {
            marker: "R-",
            waits_for: |name| name.contains("W-"),
            shared: true,
            ..WRITE
        };
        // What queues: whom a reader's and whom a writer's `force_unlock` frees.
        for (queue, readers, writers) in [
            ("", "", ""),
            ("b-R-1 a-R-2 c-W-3 d-R-4", "b-R-1 a-R-2", ""),
            ("b-W-1 a-R-2", "", "b-W-1"),
            ("a-R-1 b-W-1 c-R-2", "", "a-R-1 b-W-1"),
            ("c-W-1 d-R-1 a-W-2", "", "c-W-1 d-R-1"),
        ] {
            let names: Vec<_> = queue.split_whitespace().rev().map(String::from).collect();
            let freed = [READ, WRITE].map(|recipe| holds(&names, &recipe).join(" "));
            assert_eq!(freed, [readers, writers], "{queue}");
        }
    }

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
}
