//! One process's contenders in one directory, and what it knows of the others' nodes there.
//!
//! The contenders of a process tell each other when they enter and when their nodes go, so the server is only asked
//! about others' nodes. Numbers only grow: nobody comes before a node after its creation, and what has gone does not
//! come back. So one listing serves all contenders that came before it was requested.
//!
//! Next to read: `node.rs`.

use super::{errors_to_none, repeat_until_answered, session::Session};
use crate::registry::Registration;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};
use tokio::{sync::watch, time::Instant};
use zookeeper_client::Error;

/// If more nodes than this may have gone, a listing is cheaper than a check of each.
pub(super) const MAX_CHECKS: usize = 16;

/// A node's place in the order: by what follows the last marker in its name, as in Curator. A node without a marker is
/// no contender of ours, and is ordered by its whole name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodePlace {
    pub(super) number: String,
    pub(super) name: String,
}

impl NodePlace {
    /// Returns the place of the node `name`, whose number follows the last of these markers.
    pub(super) fn of(name: &str, markers: &[&str]) -> Self {
        let ends = markers.iter().filter_map(|marker| Some(name.rfind(marker)? + marker.len()));
        Self { number: name[ends.max().unwrap_or(0)..].to_owned(), name: name.to_owned() }
    }

    /// Whether its number is valid: after 2^31 - 1 the server's numbers turn negative and sort before all others.
    pub(super) fn is_valid(&self) -> bool {
        !self.number.starts_with('-')
    }
}

/// Whether a contender waits for a node of this name that is before its own.
pub(in crate::zk) type WaitsFor = fn(name: &str) -> bool;

/// The directory and the markers of one queue: each kind of lock in one directory is a lock of its own.
pub(super) type QueueKey = (String, &'static [&'static str]);

/// What this process knows of one queue: the nodes with these markers in one directory.
#[derive(Debug)]
pub(super) struct QueueView {
    pub(super) root: String,
    markers: &'static [&'static str],
    /// When the last listing was requested. Listings are made one after the other, so none is older than the one before.
    last_listed_at: tokio::sync::Mutex<Option<Instant>>,
    contents: Mutex<QueueContents>,
    _registration: Registration,
}

/// The nodes in the directory by the last listing, and this process's own contenders.
#[derive(Debug, Default)]
struct QueueContents {
    /// The last listing, without the nodes known to have gone.
    nodes: BTreeSet<NodePlace>,
    /// This process's contenders whose nodes have not gone, holders included.
    own: BTreeMap<NodePlace, watch::Receiver<ContenderState>>,
}

/// The state of a contender of this process: it waits, holds, or its node has gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContenderState {
    Waiting,
    Holding,
    /// Its node has gone. `seen` is the waiter of this process behind it, if the node of that waiter was there at that moment.
    Gone {
        seen: Option<NodePlace>,
    },
}

/// Whom a contender waits for: nobody, a contender of this process, or nodes of other processes.
pub(super) enum Predecessor {
    Nobody,
    /// The nearest contender is of this process, and this is its state.
    Own(watch::Receiver<ContenderState>),
    /// The nearest contender is of another process. It comes first here, then the next ones of other processes,
    /// [`MAX_CHECKS`] + 1 in all at most.
    Others(Vec<NodePlace>),
}

/// A contender in this process's line, from the creation of its node. If it is dropped before its node has gone, the
/// contenders behind it must find out themselves when the node goes.
#[derive(Debug)]
pub(super) struct LineMember {
    queue: Arc<QueueView>,
    place: NodePlace,
    state: watch::Sender<ContenderState>,
}

impl LineMember {
    /// Reports that its turn has come.
    pub(super) fn report_turn(&self) {
        self.state.send_replace(ContenderState::Holding);
    }

    /// Returns the next waiter of this process behind it, skipping holders; `None` if there is none.
    pub(super) fn next_waiter(&self) -> Option<NodePlace> {
        let contents = self.queue.contents.lock();
        let mut behind = contents.own.range((Excluded(&self.place), Unbounded));
        let next = behind.find(|(_, state)| *state.borrow() == ContenderState::Waiting);
        next.map(|(place, _)| place.clone())
    }

    /// Reports that its node has gone, and that the node of `seen` was there at that moment.
    pub(super) fn report_gone(self, seen: Option<NodePlace>) {
        self.queue.forget_nodes([&self.place]);
        self.remove_from_queue();
        self.state.send_replace(ContenderState::Gone { seen });
    }

    fn remove_from_queue(&self) {
        self.queue.contents.lock().own.remove(&self.place);
    }
}

impl Drop for LineMember {
    fn drop(&mut self) {
        self.remove_from_queue();
    }
}

impl QueueView {
    pub(super) fn new((directory, markers): &QueueKey, registration: Registration) -> Self {
        Self {
            root: directory.clone(),
            markers,
            last_listed_at: tokio::sync::Mutex::default(),
            contents: Mutex::default(),
            _registration: registration,
        }
    }

    /// Adds a contender of this process, whose node has just been created.
    pub(super) fn join(self: &Arc<Self>, place: &NodePlace) -> LineMember {
        let (state, told) = watch::channel(ContenderState::Waiting);
        self.contents.lock().own.insert(place.clone(), told);
        LineMember { queue: self.clone(), place: place.clone(), state }
    }

    /// The state of the nearest waiter of this process that is before `own` and that `own` waits for; `None` if there is none.
    /// One that holds already is skipped: `predecessor_of` finds it.
    pub(super) fn own_waiter_before(&self, own: &NodePlace, waits_for: WaitsFor) -> Option<watch::Receiver<ContenderState>> {
        let contents = self.contents.lock();
        let mut before = contents.own.range(..own).rev();
        let waits = |state: &watch::Receiver<ContenderState>| *state.borrow() == ContenderState::Waiting;
        let found = before.find(|(place, state)| waits_for(&place.name) && waits(state));
        found.map(|(_, state)| state.clone())
    }

    /// Lists the directory, unless a listing was requested after `since`; returns whether it did.
    pub(super) async fn ensure_listed_since(&self, since: Instant, session: &Session) -> Result<bool, Error> {
        let mut last_listed_at = self.last_listed_at.lock().await;
        if *last_listed_at > Some(since) {
            return Ok(false);
        }
        let asked = Instant::now();
        let children = repeat_until_answered(|| list_nodes(session, &self.root)).await?;
        self.contents.lock().nodes = children.iter().map(|name| NodePlace::of(name, self.markers)).collect();
        *last_listed_at = Some(asked);
        Ok(true)
    }

    /// The contender that `own` waits for by the last listing; `None` if `own` itself was not there.
    pub(super) fn predecessor_of(&self, own: &NodePlace, waits_for: WaitsFor) -> Option<Predecessor> {
        let contents = self.contents.lock();
        if !contents.nodes.contains(own) {
            return None;
        }
        let before = contents.nodes.range(..own).rev();
        let mut before = before.filter(|place| waits_for(&place.name)).peekable();
        let Some(nearest) = before.peek() else {
            return Some(Predecessor::Nobody);
        };
        if let Some(state) = contents.own.get(*nearest) {
            let mut state = state.clone();
            // The present state is known, so that the next change is the departure of the contender.
            state.mark_unchanged();
            return Some(Predecessor::Own(state));
        }
        let others = before.filter(|place| !contents.own.contains_key(*place));
        Some(Predecessor::Others(others.take(MAX_CHECKS + 1).cloned().collect()))
    }

    /// Forgets nodes that have gone.
    pub(super) fn forget_nodes<'a>(&self, gone: impl IntoIterator<Item = &'a NodePlace>) {
        let mut contents = self.contents.lock();
        for place in gone {
            contents.nodes.remove(place);
        }
    }

    /// Forgets all nodes before `own` that it has waited for.
    pub(super) fn forget_before(&self, own: &NodePlace, waits_for: WaitsFor) {
        let waits = |place: &&NodePlace| waits_for(&place.name);
        let before: Vec<_> = self.contents.lock().nodes.range(..own).filter(waits).cloned().collect();
        self.forget_nodes(&before);
    }

    pub(super) fn node_path(&self, place: &NodePlace) -> String {
        format!("{}/{}", self.root, place.name)
    }
}

/// Returns the names of all nodes in a directory, in no order; none if it is missing.
pub(super) async fn list_nodes(session: &Session, directory: &str) -> Result<Vec<String>, Error> {
    Ok(errors_to_none(&[Error::NoNode], session.list_children(directory).await)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_ordered_by_number_and_not_by_uuid() {
        // Markers: names in order. A name without a marker is ordered by its whole name.
        let orders = "
            lock-: _c_z-lock-0000000003 _c_m-lock-0000000004 _c_a-lock-0000000012
            lock-: _c_a-lock-0000000000 lock-9-lock-0000000001
            lock-: 0000000004 _c_a-lock-0000000005 stranger
            __READ__ __WRIT__: _c_b-__READ__0000000001 _c_a-__WRIT__0000000002 _c_c-__READ__0000000003";
        for order in orders.trim().lines() {
            let (markers, ordered) = order.split_once(':').unwrap();
            let [markers, ordered] = [markers, ordered].map(|words| words.split_whitespace().collect::<Vec<_>>());
            let mut names: Vec<_> = ordered.iter().rev().copied().collect();
            names.sort_by_key(|name| NodePlace::of(name, &markers));
            assert_eq!(names, ordered);
        }
    }
}
