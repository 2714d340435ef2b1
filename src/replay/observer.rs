//! What is known of a replay: who is inside, who holds the lock, and what the servers held when they were last read.
//! Each event of an actor, and each change in the servers, becomes an event of the log.
//!
//! Next: `replay_log.rs`.

use super::{
    actor::ActorEvent,
    servers::{ServerReader, ServerState},
    shared_reads::LockEntry,
};
use crate::{
    error::Error,
    replay_log::{Log, ReplayEvent},
    section::Point,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// The points after which an actor is no longer inside, besides [`Point::Unlocked`], at which `finish` does not stop.
pub(super) const EXIT_POINTS: [Point; 6] =
    [Point::Written, Point::Released, Point::Committed, Point::Conflict, Point::Leaves, Point::Left];

/// How often the servers are read: a lock that is held for a shorter time may be missing in the timeline.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A lock that is gone earlier than this before the end of its lease was given back; reads are that inexact.
const LEASE_TOLERANCE_MS: i64 = 60;

/// The state of a replay and its log. Each event of an actor updates both, and has the servers read again at once.
#[derive(Debug, Default)]
pub(super) struct Observer {
    pub(super) log: Arc<Log>,
    state: Mutex<ReplayState>,
    changed: Notify,
}

/// The state of a replay: who holds the lock, who is inside, what was sold, and the servers as last read.
#[derive(Debug, Default)]
struct ReplayState {
    actors: Vec<KnownActor>,
    /// Started actors whose owner ids are not known yet.
    starting: BTreeSet<char>,
    /// The actor that took the lock last, though it may have released it.
    holder: Option<char>,
    /// The holder of a lock whose text in the server names nobody.
    unnamed_holder: Option<char>,
    inside: BTreeSet<char>,
    /// In the order of acquisition.
    acquired: Vec<char>,
    most_inside: usize,
    sold: i64,
    servers: ServerState,
    read_at: Option<Instant>,
}

/// A started actor as its events describe it.
#[derive(Debug)]
struct KnownActor {
    letter: char,
    instance: String,
    owner: String,
    has_unlocked: bool,
    token: Option<u64>,
}

impl Observer {
    pub(super) fn new(log: Arc<Log>) -> Self {
        Self { log, ..Self::default() }
    }

    /// Whether the locks that were read last satisfy this condition.
    pub(super) fn locks_satisfy(&self, condition: impl Fn(&[LockEntry]) -> bool) -> bool {
        condition(&self.state.lock().servers.locks)
    }

    /// The actor that took the lock last, though it may have released it; `None` before the first one.
    pub(super) fn last_holder(&self) -> Option<char> {
        self.state.lock().holder
    }

    /// The number of pieces sold, and the most actors inside at once.
    pub(super) fn totals(&self) -> (i64, usize) {
        let state = self.state.lock();
        (state.sold, state.most_inside)
    }

    /// The name of the instance on which this actor runs; `None` before its first event.
    pub(super) fn instance_of(&self, letter: char) -> Option<String> {
        self.state.lock().actor(letter).map(|actor| actor.instance.clone())
    }

    /// The letters in the order of acquisition: `A C B`.
    pub(super) fn acquisition_order(&self) -> String {
        let entered: Vec<_> = self.state.lock().acquired.iter().map(char::to_string).collect();
        entered.join(" ")
    }

    /// Marks an actor as starting. Until it reports its owner, a stranger's lock is not shown: it may be this actor's.
    pub(super) fn actor_starting(&self, letter: char) {
        self.state.lock().starting.insert(letter);
    }

    /// Records and logs an event of an actor, and has the servers read again at once. `sells`: its success is a sale.
    pub(super) fn record_event(&self, letter: char, act: &str, sells: bool, event: &ActorEvent) {
        let mut state = self.state.lock();
        for event in state.record_actor_event(letter, act, sells, event) {
            self.log.add(event);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Logs that an actor stands at a stop until a person lets it go on.
    pub(super) fn record_stop(&self, letter: char, at: Point) {
        let instance = self.instance_of(letter);
        self.log.add(ReplayEvent { instance, value: Some(at.name().into()), ..ReplayEvent::of(letter, "stands") });
    }

    /// Reads the servers again and again, until this future is dropped.
    pub(super) async fn poll(&self, reader: &ServerReader) {
        loop {
            // The replay itself may have stopped a server: the next read may succeed.
            self.refresh(reader).await.unwrap_or_else(|error| tracing::debug!(%error, "not seen"));
            drop(tokio::time::timeout(POLL_INTERVAL, self.changed.notified()).await);
        }
    }

    /// Reads the servers now, and logs their changes. An error, which logs nothing, if one cannot be read.
    pub(super) async fn refresh(&self, reader: &ServerReader) -> Result<(), Error> {
        let seen = reader.read().await?;
        let mut state = self.state.lock();
        for event in state.record_changes(seen) {
            self.log.add(event);
        }
        Ok(())
    }
}

impl ReplayState {
    /// Records an event of an actor, and returns what the log shows of it.
    fn record_actor_event(&mut self, letter: char, act: &str, sells: bool, actor_event: &ActorEvent) -> Vec<ReplayEvent> {
        self.starting.remove(&letter);
        let instance = self.actor(letter).map(|actor| actor.instance.clone());
        let event = |event: &str| ReplayEvent { instance: instance.clone(), ..ReplayEvent::of(letter, event) };
        let mut events = Vec::new();
        match actor_event {
            ActorEvent::Start { instance, owner } => {
                events.push(ReplayEvent { instance: Some(instance.clone()), value: Some(act.into()), ..event("start") });
                self.actors.retain(|actor| actor.letter != letter);
                self.actors.push(KnownActor {
                    letter,
                    instance: instance.clone(),
                    owner: owner.clone(),
                    has_unlocked: false,
                    token: None,
                });
            }
            ActorEvent::Point { point, value } => {
                let seen = event(point.name());
                events.push(self.record_point(letter, point, value.as_deref(), seen));
            }
            ActorEvent::Sent { line } => events.push(event("sent").with_value(line.as_str())),
            ActorEvent::Answered { line, answer } => {
                events.push(event("answered").with_key(line).with_value(answer.as_str()));
            }
            ActorEvent::Done { remaining, fence, retries, lost } => {
                self.inside.remove(&letter);
                let has_unlocked = self.actor(letter).is_some_and(|actor| actor.has_unlocked);
                match lost {
                    Some(true) => events.push(event("lost")),
                    Some(false) if !has_unlocked => events.push(event("released")),
                    _ => {}
                }
                self.sold += i64::from(sells);
                let value = remaining.map(|left| left.to_string().into());
                let done = if sells { "sold" } else { "done" };
                events.push(ReplayEvent { value, token: *fence, ..event(done) });
                if *retries > 0 {
                    events.push(event("retries").with_value(retries.to_string()));
                }
            }
            ActorEvent::Failed { kind, detail } => {
                self.inside.remove(&letter);
                events.push(match kind.as_str() {
                    "fenced" => ReplayEvent {
                        value: Some(self.servers.fence.into()),
                        token: self.actor(letter).and_then(|actor| actor.token),
                        ..event("refused-by-row")
                    },
                    // The page has its own words for each kind of refusal.
                    "error" => event("failed").with_value(detail.as_str()),
                    kind => event("failed").with_value(kind),
                });
            }
        }
        events
    }

    /// Records what passing this point means (lock taken, section entered or left), and completes `seen`, its event. At `Locked`
    /// the value is the fencing token; `Unlocked` becomes `deleted`, marked `foreign` if another actor had taken the lock since.
    fn record_point(&mut self, letter: char, point: &Point, value: Option<&str>, mut seen: ReplayEvent) -> ReplayEvent {
        seen.value = value.map(Into::into);
        match point {
            Point::Taken => {
                seen.owner = Some(letter.to_string());
                self.set_holder(letter);
            }
            Point::Locked => {
                // The value at this point is the fencing token.
                seen.token = value.and_then(|token| token.parse().ok());
                seen.value = None;
                if let Some(actor) = self.actor_mut(letter) {
                    actor.token = seen.token;
                }
                self.set_holder(letter);
                self.inside.insert(letter);
                self.acquired.push(letter);
                self.most_inside = self.most_inside.max(self.inside.len());
            }
            point if EXIT_POINTS.contains(point) => {
                self.inside.remove(&letter);
            }
            Point::Checked => {
                seen.owner = value.map(|owner| self.owner_label(owner));
                seen.value = None;
            }
            Point::Unlocked => {
                // A delete without a look at the owner hits the lock of whoever took it last.
                let foreign = self.holder.filter(|holder| *holder != letter);
                seen.event = "deleted".to_owned();
                seen.owner = Some(foreign.unwrap_or(letter).to_string());
                seen.value = foreign.map(|_| "foreign".into());
                self.inside.remove(&letter);
                if let Some(actor) = self.actor_mut(letter) {
                    actor.has_unlocked = true;
                }
            }
            _ => {}
        }
        seen
    }

    /// Records that this actor has taken the lock.
    fn set_holder(&mut self, letter: char) {
        self.holder = Some(letter);
        self.unnamed_holder = Some(letter);
    }

    /// Records what the servers hold now, and returns the events of what has changed since they were last read.
    fn record_changes(&mut self, mut now: ServerState) -> Vec<ReplayEvent> {
        now.locks.retain_mut(|lock| self.can_be_shown(lock));
        let read_at = Instant::now();
        let since_ms = self.read_at.map_or(0, |before| i64::try_from((read_at - before).as_millis()).unwrap_or(i64::MAX));
        let before = std::mem::take(&mut self.servers);
        let mut events = self.freed_locks(&before.locks, &now.locks, since_ms);
        for lock in &now.locks {
            let old = before.locks.iter().find(|old| old.is_same_hold(lock));
            events.extend(self.lock_changes(old, lock, since_ms));
        }
        events.extend(count_changes(&before.counts, &now.counts));
        events.extend(stock_change(before.stock, now.stock));
        events.extend(fence_change(before.fence, now.fence));
        (self.servers, self.read_at) = (now, Some(read_at));
        events
    }

    /// Whether this lock may be shown. A stranger's may not while an actor is starting: it may be this actor's, whose owner
    /// is not known yet. One that names nobody may not before an actor has taken it; then its `owner` becomes that actor.
    fn can_be_shown(&self, lock: &mut LockEntry) -> bool {
        if self.actor_named_in(&lock.owner).is_some() {
            return true;
        }
        if lock.owner.contains(':') {
            return self.starting.is_empty();
        }
        let Some(letter) = self.unnamed_holder else {
            return false;
        };
        lock.owner = letter.to_string();
        true
    }

    /// The events of locks that are gone: `expired` if the lease was over by now, else, as without a lease, `free`. Forgets the
    /// unnamed holder of such a lock. `since_ms` is the time between the reads.
    fn freed_locks(&mut self, before: &[LockEntry], now: &[LockEntry], since_ms: i64) -> Vec<ReplayEvent> {
        let mut events = Vec::new();
        let is_there = |old: &LockEntry| now.iter().any(|new| new.is_same_hold(old));
        for lock in before.iter().filter(|old| !is_there(old)) {
            let was_early = lock.pttl.is_none_or(|left| left < 0 || left - since_ms > LEASE_TOLERANCE_MS);
            self.unnamed_holder.take_if(|letter| lock.owner == letter.to_string());
            let event = if was_early { "free" } else { "expired" };
            events.push(ReplayEvent {
                key: Some(lock.key.clone()),
                owner: Some(self.owner_label(&lock.owner)),
                ..ReplayEvent::of("lock", event)
            });
        }
        events
    }

    /// The events of a lock that is new, renewed, or has another queue than before; with another count of holds it is `held`
    /// again. `since_ms` is the time between the reads.
    fn lock_changes(&self, old: Option<&LockEntry>, lock: &LockEntry, since_ms: i64) -> Vec<ReplayEvent> {
        let mut events = Vec::new();
        let is_new = old.is_none_or(|old| old.count != lock.count);
        let lease_grew = old.is_some_and(|old| lock.pttl > old.pttl.map(|left| left - since_ms + LEASE_TOLERANCE_MS));
        if is_new || lease_grew {
            let event = if is_new { "held" } else { "renewed" };
            events.push(self.lock_event(lock, ReplayEvent::of("lock", event)));
        }
        if !lock.queue.is_empty() && old.is_none_or(|old| old.queue != lock.queue) {
            let actors = lock.queue.iter().map(|owner| self.actor_named_in(owner));
            let queue: Vec<_> = actors.map(|actor| actor.unwrap_or_else(|| "·".to_owned())).collect();
            let event = ReplayEvent::of("lock", "queue").with_key(&lock.key);
            events.push(event.with_value(queue.join(" ")));
        }
        events
    }

    /// Completes `event` with the key, owner, lease and holds of this lock.
    fn lock_event(&self, held: &LockEntry, event: ReplayEvent) -> ReplayEvent {
        ReplayEvent {
            key: Some(held.key.clone()),
            owner: Some(self.owner_label(&held.owner)),
            pttl: held.pttl,
            value: held.count.map(|count| count.to_string().into()),
            ..event
        }
    }

    fn actor(&self, letter: char) -> Option<&KnownActor> {
        self.actors.iter().find(|actor| actor.letter == letter)
    }

    fn actor_mut(&mut self, letter: char) -> Option<&mut KnownActor> {
        self.actors.iter_mut().find(|actor| actor.letter == letter)
    }

    /// The letter of the actor that this text names. A text without `:` names nobody, and counts as that of the actor that took the
    /// lock last; any other text stays as it is.
    fn owner_label(&self, owner: &str) -> String {
        let nameless = || {
            let holder = self.holder.filter(|_| !owner.contains(':'));
            holder.map(String::from)
        };
        self.actor_named_in(owner).or_else(nameless).unwrap_or_else(|| owner.to_owned())
    }

    /// The letter of the actor whose letter this text is, whose owner it contains, or who is alone on the instance with
    /// whose name it begins; `None` for a stranger.
    fn actor_named_in(&self, owner: &str) -> Option<String> {
        let by_owner = self.actors.iter().find(|actor| owner == actor.letter.to_string() || has_owner(owner, &actor.owner));
        let mut by_instance = self.actors.iter().filter(|actor| owner.starts_with(&actor.instance));
        let by_instance = by_instance.next().filter(|_| by_instance.next().is_none());
        let actor = by_owner.or(by_instance)?;
        Some(actor.letter.to_string())
    }
}

/// Whether the text names this owner. The number at its end must not be the beginning of a longer one.
fn has_owner(text: &str, owner: &str) -> bool {
    let is_whole = |(at, _): (usize, &str)| !text[at + owner.len()..].starts_with(|next: char| next.is_ascii_digit());
    text.match_indices(owner).any(is_whole)
}

/// The events of counters in Redis that are gone (`free`), or are new or have another value (`count`).
fn count_changes(before: &[(String, i64)], now: &[(String, i64)]) -> Vec<ReplayEvent> {
    let is_there = |old: &str| now.iter().any(|(new, _)| new == old);
    let gone = before.iter().filter(|(key, _)| !is_there(key));
    let gone = gone.map(|(key, _)| ReplayEvent::of("lock", "free").with_key(key));
    let changed = now.iter().filter(|count| !before.contains(count));
    let changed = changed.map(|(key, count)| {
        let event = ReplayEvent::of("lock", "count").with_key(key);
        event.with_value(count.to_string())
    });
    gone.chain(changed).collect()
}

/// The event of a new number of pieces; `None` if it is the same, or unknown.
fn stock_change(before: Option<i64>, now: Option<i64>) -> Option<ReplayEvent> {
    let count = now.filter(|_| now != before)?;
    Some(ReplayEvent::of("stock", "stock").with_value(count.to_string()))
}

/// The event of a new fencing token in the row of MySQL; `None` if it is the same, unknown, or 0, which no write has set.
fn fence_change(before: Option<u64>, now: Option<u64>) -> Option<ReplayEvent> {
    let token = now.filter(|token| *token > 0 && now != before)?;
    Some(ReplayEvent { token: Some(token), ..ReplayEvent::of("row", "fence") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(letter: char) -> ActorEvent {
        ActorEvent::Start { instance: format!("shop-{letter}"), owner: format!("{letter}:1") }
    }

    fn held_by(owner: &str) -> LockEntry {
        LockEntry { key: "lock".into(), owner: owner.into(), pttl: Some(-1), count: None, queue: Vec::new() }
    }

    /// The events of the locks, once these are in the server.
    fn lock_events(state: &mut ReplayState, locks: Vec<LockEntry>) -> String {
        let events = state.record_changes(ServerState { locks, ..ServerState::default() });
        let said = |event: ReplayEvent| format!("{} {}", event.event, event.owner.unwrap());
        events.into_iter().map(said).collect::<Vec<_>>().join(", ")
    }

    /// A look at the server may come before the first word of who holds the lock there.
    #[test]
    fn a_starting_actors_lock_is_shown_once_its_owner_is_known() {
        let observer = Observer::default();
        let look = |owner| lock_events(&mut observer.state.lock(), vec![held_by(owner)]);
        assert_eq!(look("stranger:1"), "held stranger:1");
        observer.actor_starting('A');
        assert_eq!(look("A:1"), "free stranger:1");
        observer.record_event('A', "redis-lock", true, &begins('A'));
        assert_eq!(look("A:1"), "held A");
    }

    /// `SETNX key 111`: its text names nobody.
    #[test]
    fn a_lock_that_names_nobody_is_its_takers() {
        let mut state = ReplayState::default();
        for letter in ['A', 'B'] {
            state.record_actor_event(letter, "redis-setnx", true, &begins(letter));
        }
        let mut look = |takes: Option<char>, is_there: bool| {
            if let Some(letter) = takes {
                let taken = ActorEvent::Point { point: Point::Taken, value: None };
                state.record_actor_event(letter, "redis-setnx", true, &taken);
            }
            let locks = is_there.then(|| held_by("111"));
            lock_events(&mut state, locks.into_iter().collect())
        };
        for (takes, is_there, said) in [
            (None, true, ""),
            (Some('A'), true, "held A"),
            (None, true, ""),
            (None, false, "free A"),
            (None, true, ""),
            (Some('B'), true, "held B"),
            // Between two looks it is given back and taken again.
            (Some('A'), true, "free B, held A"),
        ] {
            assert_eq!(look(takes, is_there), said, "{takes:?} {is_there}");
        }
    }
    #[test]
    fn an_owner_is_not_one_whose_number_begins_alike() {
        for (text, is_named) in [("p:1", true), ("p:1:write", true), ("p:12", false), ("p:12 p:1", true)] {
            assert_eq!(has_owner(text, "p:1"), is_named, "{text}");
        }
    }
}
