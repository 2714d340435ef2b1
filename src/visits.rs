//! Who visits a lesson, and what is seen of it: who waits, who is inside, and what is printed, for a class that looks on.
//!
//! 1. A request opens a lane ([`Visits::open`]), and its job tells it what it does: it waits, is inside, leaves, prints a line.
//! 2. Each of these is an event. The last ones are kept, so that who comes late sees what was before.
//! 3. Who watches ([`Visits::watch`]) is told the rest as it happens.
//!
//! A stay begins here after the lock was taken, and ends before it is given back, or when its lease ends by itself: two lanes
//! that are inside at once were so.
//! **What breaks it**: instances on machines whose clocks differ. Nobody visits: it costs nothing.

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

/// So many events are kept, and none that is older.
const KEPT: usize = 1000;
const LONGEST: Duration = Duration::from_secs(600);

/// Who watches and is further behind than this misses something.
const BEHIND: usize = 1024;

/// One thing that was seen of a visit, or of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VisitEvent {
    /// Unix time, in microseconds: when it was told; of `released`, where a lease ends by itself, when that ended. So it may be
    /// earlier than that of an event before it.
    #[schema(example = 1_763_780_000_000_000_u64)]
    pub t_us: u64,
    /// Where.
    #[schema(example = "8100")]
    pub instance: String,
    /// What.
    pub event: Happened,
    /// Of which visit; absent where it is of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit: Option<Uuid>,
    /// Who visits, where a name was given. It is whatever somebody has typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    pub actor: Option<String>,
    /// The object that is visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "semaphore")]
    pub key: Option<String>,
    /// `start`: the route; `said`: the line; `count`: the number; `member`: the member's node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/test/semaphore")]
    pub value: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Happened {
    /// The instance is there; who watches is told so first, with the time that it is there.
    Up,
    /// The instance does not answer: who was inside there is not any more.
    Down,
    /// Somebody has set the stock anew, and cleared every lock, latch and barrier.
    Reset,
    /// Somebody has come, and waits.
    Start,
    /// It is inside.
    Locked,
    /// It has printed a line.
    Said,
    /// What is counted has come to this.
    Count,
    /// It has become a member.
    Member,
    /// It has left.
    Released,
    /// It has gone without having been inside.
    Failed,
}

/// The visits of one instance. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Visits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    instance: String,
    kept: Mutex<VecDeque<VisitEvent>>,
    told: broadcast::Sender<VisitEvent>,
}

impl Visits {
    /// Nobody has come yet.
    #[must_use]
    pub fn new(instance: &str) -> Self {
        let (instance, told) = (instance.to_owned(), broadcast::Sender::new(BEHIND));
        Self(Arc::new(Inner {
            instance,
            kept: Mutex::default(),
            told,
        }))
    }

    /// Somebody comes to this object by this route.
    #[must_use]
    pub fn open(&self, actor: Option<String>, key: String, route: &str) -> Lane {
        let lane = Lane {
            visits: self.clone(),
            id: Uuid::new_v4(),
            actor,
            key,
            inside: AtomicBool::new(false),
            over: AtomicBool::new(false),
        };
        lane.tell(Happened::Start, Some(route.to_owned()), None);
        lane
    }

    /// The stock was set anew.
    pub fn reset(&self) {
        self.add(
            VisitEvent::of_instance(&self.0.instance, Happened::Reset),
            None,
        );
    }

    /// What is kept, and then all that follows; first that the instance is there.
    #[must_use]
    pub fn watch(&self) -> (Vec<VisitEvent>, broadcast::Receiver<VisitEvent>) {
        let kept = self.0.kept.lock();
        let up = VisitEvent::of_instance(&self.0.instance, Happened::Up);
        let oldest = up.t_us.saturating_sub(micros(LONGEST));
        let young = kept.iter().filter(|event| event.t_us >= oldest).cloned();
        // Nothing is added meanwhile: nothing is told twice, and nothing is left out.
        (once(up).chain(young).collect(), self.0.told.subscribe())
    }

    fn add(&self, event: VisitEvent, end: Option<SystemTime>) {
        let mut kept = self.0.kept.lock();
        // The time is taken here, so that the events are in order; only an end that was known before may be earlier.
        let t_us = end.map_or(u64::MAX, unix_us).min(now_us());
        let event = VisitEvent { t_us, ..event };
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(event.clone());
        // It fails where nobody watches.
        drop(self.0.told.send(event));
    }
}

impl VisitEvent {
    /// What happened now to an instance.
    #[must_use]
    pub fn of_instance(instance: &str, event: Happened) -> Self {
        let instance = instance.to_owned();
        Self {
            t_us: now_us(),
            instance,
            event,
            visit: None,
            actor: None,
            key: None,
            value: None,
        }
    }
}

/// One visit. Dropped, it is over.
#[derive(Debug)]
pub struct Lane {
    visits: Visits,
    id: Uuid,
    actor: Option<String>,
    key: String,
    inside: AtomicBool,
    over: AtomicBool,
}

impl Lane {
    /// It is inside.
    pub fn enter(&self) {
        if !self.inside.swap(true, Ordering::Relaxed) {
            self.tell(Happened::Locked, None, None);
        }
    }

    /// It leaves: what follows gives the lock back.
    pub fn leave(&self) {
        self.leave_by(None);
    }

    /// The same; where its lease ends by itself, it has left by that `end`, however late this is told.
    pub fn leave_by(&self, end: Option<SystemTime>) {
        if !self.over.swap(true, Ordering::Relaxed) {
            let inside = self.inside.load(Ordering::Relaxed);
            self.tell(
                if inside {
                    Happened::Released
                } else {
                    Happened::Failed
                },
                None,
                end,
            );
        }
    }

    /// It has printed a line, or has come to a number or a name.
    pub fn note(&self, event: Happened, value: impl Display) {
        self.tell(event, Some(value.to_string()), None);
    }

    fn tell(&self, event: Happened, value: Option<String>, end: Option<SystemTime>) {
        let (visit, actor, key) = (Some(self.id), self.actor.clone(), Some(self.key.clone()));
        let of_instance = VisitEvent::of_instance(&self.visits.0.instance, event);
        self.visits.add(
            VisitEvent {
                visit,
                actor,
                key,
                value,
                ..of_instance
            },
            end,
        );
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.leave();
    }
}

fn now_us() -> u64 {
    unix_us(SystemTime::now())
}

fn unix_us(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, micros)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(events: &[VisitEvent]) -> Vec<Happened> {
        events.iter().map(|event| event.event).collect()
    }

    #[test]
    fn who_comes_late_sees_what_was_before_and_then_what_follows() {
        let visits = Visits::new("8000");
        let first = visits.open(Some("甲".into()), "semaphore".into(), "/test/semaphore");
        first.enter();
        let (before, mut after) = visits.watch();
        assert_eq!(
            seen(&before),
            [Happened::Up, Happened::Start, Happened::Locked]
        );
        first.leave();
        drop(first);
        drop(visits.open(None, "semaphore".into(), "/test/semaphore"));
        let next: Vec<_> = std::iter::from_fn(|| after.try_recv().ok()).collect();
        assert_eq!(
            seen(&next),
            [Happened::Released, Happened::Start, Happened::Failed]
        );
        assert_eq!(
            (before[2].visit, before[2].actor.as_deref()),
            (next[0].visit, Some("甲"))
        );
    }

    #[test]
    fn who_is_told_late_to_have_left_has_left_when_its_lease_ended() {
        let visits = Visits::new("8000");
        let stay = |end: SystemTime| {
            let lane = visits.open(None, "rwLock".into(), "/test/write");
            lane.enter();
            lane.leave_by(Some(end));
            visits.watch().0.pop().map(|told| (told.event, told.t_us))
        };
        let (over, to_come) = (
            SystemTime::now() - Duration::from_secs(1),
            SystemTime::now() + LONGEST,
        );
        assert_eq!(stay(over), Some((Happened::Released, unix_us(over))));
        assert!(stay(to_come).is_some_and(|(event, t_us)| event == Happened::Released && t_us < unix_us(to_come)));
    }

    #[test]
    fn what_is_kept_does_not_grow_for_ever() {
        let visits = Visits::new("8000");
        for _ in 0..KEPT {
            drop(visits.open(None, "semaphore".into(), "/test/semaphore"));
        }
        assert_eq!(visits.watch().0.len(), KEPT + 1);
    }
}
