//! Visits to lessons, for the class page: requests that wait, are inside, and print lines.
//!
//! 1. A request opens a visit ([`Visits::open`]); its job reports that it waits, is inside, leaves, prints a line.
//! 2. Each report is an event. The last ones are kept for a watcher that comes late.
//! 3. A watcher ([`Visits::watch`]) then receives each event as it happens.
//!
//! A visit is inside from after the lock is acquired until before it is released, or until its lease ends: two visits that
//! overlap were inside together.
//! **What breaks it**: instances on machines whose clocks differ. Without visits it costs nothing.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    fmt::Display,
    iter::once,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;
use utoipa::ToSchema;
use uuid::Uuid;

/// The most events that an instance keeps for watchers that come late; the oldest go first.
const MAX_KEPT_EVENTS: usize = 1000;
/// A watcher that comes late gets no older events: as long as a visit may wait.
const MAX_EVENT_AGE: Duration = Duration::from_secs(600);

/// A watcher that is behind by more events misses some.
const WATCHER_BUFFER: usize = 1024;

/// An event of a visit, or of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VisitEvent {
    /// Unix time in microseconds of the report; for `released` after a lease that ended by itself, the time of that end, which
    /// may be earlier than the time of a preceding event.
    #[schema(example = 1_763_780_000_000_000_u64)]
    pub t_us: u64,
    #[schema(example = "8100")]
    pub instance: String,
    pub event: VisitEventKind,
    /// The visit; absent for an event of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit: Option<Uuid>,
    /// The visitor's name as it was typed; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    pub actor: Option<String>,
    /// The lock or other object that is visited; `lesson`, `guess`: the lesson.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "semaphore")]
    pub key: Option<String>,
    /// `start`: the route; `said`: the line; `count`, `guess`: the number; `member`: the node of the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/test/semaphore")]
    pub value: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VisitEventKind {
    /// The instance is up; the first event that a watcher receives, with the instance's time.
    Up,
    /// The instance does not answer; its visits have ended.
    Down,
    /// The stock was reset, and every lock, latch and barrier cleared.
    Reset,
    /// A visit begins, and waits.
    Start,
    Locked,
    /// It printed a line.
    Said,
    /// A count has this value.
    Count,
    /// It has become a member of the group.
    Member,
    Released,
    /// It has ended without having been inside.
    Failed,
    /// This lesson is on show; guesses begin anew.
    Lesson,
    /// A guess about the end of the race of a lesson.
    Guess,
    /// The race of this lesson has ended: what was guessed is answered.
    Ended,
}

/// The visits of one instance.
#[derive(Debug)]
pub struct Visits {
    instance: String,
    recent_events: Mutex<VecDeque<VisitEvent>>,
    sender: broadcast::Sender<VisitEvent>,
}

impl Visits {
    pub fn new(instance: &str) -> Arc<Self> {
        let (instance, sender) = (instance.to_owned(), broadcast::Sender::new(WATCHER_BUFFER));
        Arc::new(Self { instance, recent_events: Mutex::default(), sender })
    }

    /// Begins a visit to this object through this route.
    pub fn open(self: &Arc<Self>, actor: Option<String>, key: String, route: &str) -> VisitGuard {
        let visit = VisitGuard {
            visits: Arc::clone(self),
            id: Uuid::new_v4(),
            actor,
            key,
            is_inside: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        };
        visit.add_event(VisitEventKind::Start, Some(route.to_owned()), None);
        visit
    }

    /// Reports that the stock was reset and that every lock, latch and barrier was cleared.
    pub fn report_reset(&self) {
        self.add(VisitEvent::of_instance(&self.instance, VisitEventKind::Reset), None);
    }

    /// Reports an event that belongs to no visit: a lesson on show, its end, or a guess. `key` is the lesson.
    pub fn report_lesson(&self, event: VisitEventKind, actor: Option<String>, key: String, value: Option<String>) {
        let of_instance = VisitEvent::of_instance(&self.instance, event);
        let key = Some(key);
        self.add(VisitEvent { actor, key, value, ..of_instance }, None);
    }

    /// The kept events of the last 10 minutes, after one that says that the instance is up, and a receiver of all later
    /// ones.
    pub fn watch(&self) -> (Vec<VisitEvent>, broadcast::Receiver<VisitEvent>) {
        let recent_events = self.recent_events.lock();
        let up = VisitEvent::of_instance(&self.instance, VisitEventKind::Up);
        let oldest = up.t_us.saturating_sub(micros(MAX_EVENT_AGE));
        let young = recent_events.iter().filter(|event| event.t_us >= oldest).cloned();
        // The lock is held, so no event is sent twice or missed in between.
        (once(up).chain(young).collect(), self.sender.subscribe())
    }

    /// Keeps an event and sends it to all watchers. Its time is that of this call, or an earlier `end`.
    fn add(&self, event: VisitEvent, end: Option<SystemTime>) {
        let mut recent_events = self.recent_events.lock();
        // The time is taken under the lock, so that events are in order; only a known end may be earlier.
        let t_us = end.map_or(u64::MAX, unix_us).min(now_us());
        let event = VisitEvent { t_us, ..event };
        if recent_events.len() == MAX_KEPT_EVENTS {
            recent_events.pop_front();
        }
        recent_events.push_back(event.clone());
        // Fails without a watcher.
        drop(self.sender.send(event));
    }
}

impl VisitEvent {
    /// An event of an instance, now.
    pub fn of_instance(instance: &str, event: VisitEventKind) -> Self {
        let instance = instance.to_owned();
        Self { t_us: now_us(), instance, event, visit: None, actor: None, key: None, value: None }
    }
}

/// One visit. Dropping it ends the visit.
#[derive(Debug)]
pub struct VisitGuard {
    visits: Arc<Visits>,
    id: Uuid,
    actor: Option<String>,
    key: String,
    is_inside: AtomicBool,
    is_over: AtomicBool,
}

impl VisitGuard {
    /// Reports that the visit is inside; only the first call counts.
    pub fn enter(&self) {
        if !self.is_inside.swap(true, Ordering::Relaxed) {
            self.add_event(VisitEventKind::Locked, None, None);
        }
    }

    /// Ends the visit, before the unlock: as released if it was inside, else as failed. Only the first call counts.
    pub fn leave(&self) {
        self.leave_by(None);
    }

    /// As [`leave`](Self::leave). With an `end` of its lease, the visit counts as left at that time at the latest, however late
    /// this call is.
    pub fn leave_by(&self, end: Option<SystemTime>) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            let inside = self.is_inside.load(Ordering::Relaxed);
            self.add_event(if inside { VisitEventKind::Released } else { VisitEventKind::Failed }, None, end);
        }
    }

    /// Reports a printed line, a count, or the node of a member.
    pub fn report(&self, event: VisitEventKind, value: impl Display) {
        self.add_event(event, Some(value.to_string()), None);
    }

    /// Adds an event of this visit, with the time now, or `end` if that is earlier.
    fn add_event(&self, event: VisitEventKind, value: Option<String>, end: Option<SystemTime>) {
        let (visit, actor, key) = (Some(self.id), self.actor.clone(), Some(self.key.clone()));
        let of_instance = VisitEvent::of_instance(&self.visits.instance, event);
        self.visits.add(VisitEvent { visit, actor, key, value, ..of_instance }, end);
    }
}

impl Drop for VisitGuard {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The time now in microseconds of Unix time, by this machine's clock.
fn now_us() -> u64 {
    unix_us(SystemTime::now())
}

/// This time in microseconds of Unix time; 0 before 1970.
fn unix_us(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, micros)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_kinds(events: &[VisitEvent]) -> Vec<VisitEventKind> {
        events.iter().map(|event| event.event).collect()
    }

    #[test]
    fn a_late_watcher_gets_kept_events_then_new_ones() {
        let visits = Visits::new("8000");
        let first = visits.open(Some("甲".into()), "semaphore".into(), "/test/semaphore");
        first.enter();
        let (before, mut after) = visits.watch();
        assert_eq!(event_kinds(&before), [VisitEventKind::Up, VisitEventKind::Start, VisitEventKind::Locked]);
        first.leave();
        drop(first);
        drop(visits.open(None, "semaphore".into(), "/test/semaphore"));
        let next: Vec<_> = std::iter::from_fn(|| after.try_recv().ok()).collect();
        assert_eq!(event_kinds(&next), [VisitEventKind::Released, VisitEventKind::Start, VisitEventKind::Failed]);
        assert_eq!((before[2].visit, before[2].actor.as_deref()), (next[0].visit, Some("甲")));
    }

    #[test]
    fn a_late_release_has_the_time_of_the_lease_end() {
        let visits = Visits::new("8000");
        let stay = |end: SystemTime| {
            let visit = visits.open(None, "rwLock".into(), "/test/write");
            visit.enter();
            visit.leave_by(Some(end));
            visits.watch().0.pop().map(|told| (told.event, told.t_us))
        };
        let (over, to_come) = (SystemTime::now() - Duration::from_secs(1), SystemTime::now() + MAX_EVENT_AGE);
        assert_eq!(stay(over), Some((VisitEventKind::Released, unix_us(over))));
        assert!(stay(to_come).is_some_and(|(event, t_us)| event == VisitEventKind::Released && t_us < unix_us(to_come)));
    }

    #[test]
    fn kept_events_do_not_grow_for_ever() {
        let visits = Visits::new("8000");
        for _ in 0..MAX_KEPT_EVENTS {
            drop(visits.open(None, "semaphore".into(), "/test/semaphore"));
        }
        assert_eq!(visits.watch().0.len(), MAX_KEPT_EVENTS + 1);
    }
}
