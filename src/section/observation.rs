//! A job's observers (the gauge of waiters, the console, the class page, replays) and its timestamps.

use super::points::Points;
use crate::{
    console,
    visits::{VisitEventKind, VisitGuard},
};
use metrics::Gauge;
use parking_lot::Mutex;
use std::{
    fmt::Display,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How many attempts of a job are kept; older ones are dropped, since a conflict can repeat for ever.
const MAX_KEPT_ATTEMPTS: usize = 20;

/// One job's observers, and its start, entry, exit and attempts.
#[derive(Debug)]
pub struct Observation {
    started: Instant,
    entered: OnceLock<Instant>,
    went_out: Mutex<Option<Instant>>,
    tries: Mutex<Vec<(Instant, Instant)>>,
    pub(super) waiters: Gauge,
    pub(super) on_console: AtomicBool,
    pub(super) visit: Option<Arc<VisitGuard>>,
    pub(super) points: Points,
}

impl Observation {
    /// Starts the clock of a job that nobody observes yet.
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            entered: OnceLock::new(),
            went_out: Mutex::default(),
            tries: Mutex::default(),
            waiters: Gauge::noop(),
            on_console: AtomicBool::new(false),
            visit: None,
            points: Points::default(),
        }
    }

    /// Prints a line on this instance's console, on behalf of `who`, and shows it on the class page if the job is shown there.
    pub(super) fn say(&self, who: Option<&str>, words: impl Display) {
        self.report_to_class(VisitEventKind::Said, &words);
        console::say(who, words);
    }

    /// Tells the class page, if the job is shown there.
    pub(crate) fn report_to_class(&self, event: VisitEventKind, value: impl Display) {
        if let Some(visit) = &self.visit {
            visit.report(event, value);
        }
    }

    /// Its visit on the class page, for tasks that outlive the job; `None` if the job is not shown there.
    pub(crate) fn visit(&self) -> Option<Arc<VisitGuard>> {
        self.visit.clone()
    }

    /// Its points, for tasks that outlive the job.
    pub(crate) fn points(&self) -> &Points {
        &self.points
    }

    /// Records the entry, at the first call only: takes the job off the gauge, prints it if asked to, and tells the class page.
    pub(super) fn enter(&self, who: Option<&str>) {
        self.entered.get_or_init(|| {
            self.waiters.decrement(1.0);
            if self.on_console.load(Ordering::Relaxed) {
                self.say(who, "进来了");
            }
            if let Some(visit) = &self.visit {
                visit.enter();
            }
            Instant::now()
        });
    }

    /// Records that the critical section ends now (of the last attempt, if a strategy is run again), and tells the class page.
    pub(super) fn leave(&self) {
        *self.went_out.lock() = Some(Instant::now());
        if let Some(visit) = &self.visit {
            visit.leave();
        }
    }

    /// Records an attempt that began at `since` and ends now; drops the oldest of more than 20.
    pub(super) fn record_attempt(&self, since: Instant) {
        let mut tries = self.tries.lock();
        if tries.len() == MAX_KEPT_ATTEMPTS {
            tries.remove(0);
        }
        tries.push((since, Instant::now()));
    }

    /// When it entered and left, in microseconds of Unix time by this machine's clock: comparable between processes of one
    /// machine. `None` until it has left, and always for a strategy without a critical section.
    pub fn inside_us(&self) -> Option<(u64, u64)> {
        let unix = unix_us();
        Some((unix(*self.entered.get()?), unix((*self.went_out.lock())?)))
    }

    /// When each of its last 20 attempts began and ended, in the unit of [`inside_us`](Self::inside_us): from the read (or
    /// from sending a statement that reads and writes at once) to the answer to the write. All but the last one failed.
    /// Empty for a strategy with a critical section.
    pub fn tries_us(&self) -> Vec<(u64, u64)> {
        let unix = unix_us();
        let tries = self.tries.lock();
        tries.iter().map(|(from, to)| (unix(*from), unix(*to))).collect()
    }

    /// Whether the job has entered its critical section; stays true after it has left.
    pub fn has_entered(&self) -> bool {
        self.entered.get().is_some()
    }

    /// The time since the job's start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long it took to enter; the time since its start if it has not.
    pub fn waited(&self) -> Duration {
        match self.entered.get() {
            Some(entered) => *entered - self.started,
            None => self.started.elapsed(),
        }
    }

    /// The time since the entry, zero before it. It goes on growing after the exit.
    pub fn since_entered(&self) -> Duration {
        self.entered.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// Converts an `Instant` to microseconds of Unix time, by this machine's clock as it stands now.
fn unix_us() -> impl Fn(Instant) -> u64 {
    let (now, unix) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    move |then| u64::try_from(unix.saturating_sub(now - then).as_micros()).unwrap_or(u64::MAX)
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.has_entered() {
            self.waiters.decrement(1.0);
        }
    }
}
