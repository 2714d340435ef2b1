//! Who watches a job: the metrics' gauge of waiters, the console, the classroom's page, and replays; and its times.

use super::points::{Points, Reached};
use super::{Pause, Point};
use crate::{
    console,
    visits::{Happened, Lane},
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
use tokio::sync::{mpsc, watch};

/// So many tries of a job are kept, the last ones.
const TRIES: usize = 20;

/// What is seen of a job, and by whom.
#[derive(Debug)]
pub struct Observation {
    started: Instant,
    entered: OnceLock<Instant>,
    left: OnceLock<Instant>,
    tries: Mutex<Vec<(Instant, Instant)>>,
    waiters: Gauge,
    on_console: AtomicBool,
    lane: Option<Arc<Lane>>,
    points: Points,
}

impl Observation {
    /// Of a job that starts now.
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            entered: OnceLock::new(),
            left: OnceLock::new(),
            tries: Mutex::default(),
            waiters: Gauge::noop(),
            on_console: AtomicBool::new(false),
            lane: None,
            points: Points::default(),
        }
    }

    /// Counts the job among `waiters` until it gets in or is dropped.
    pub(super) fn count(&mut self, waiters: Gauge) {
        waiters.increment(1.0);
        self.waiters = waiters;
    }

    /// Shows it to those who look at the lesson.
    pub(super) fn show(&mut self, lane: Lane) {
        self.lane = Some(Arc::new(lane));
    }

    /// Hands its points to a replay.
    pub(super) fn follow(
        &mut self,
        seen: mpsc::UnboundedSender<Reached>,
        stops: watch::Receiver<Vec<Point>>,
        linger: Duration,
    ) {
        self.points.follow(seen, stops, linger);
    }

    pub(super) fn pause_at(&mut self, point: Point) -> Pause {
        self.points.pause_at(point)
    }

    /// The same points for a job that is part of this one.
    pub(super) fn share_points(&mut self, of: &Self) {
        self.points = of.points.clone();
    }

    /// From now on the console says when the job gets in.
    pub(super) fn print(&self) {
        self.on_console.store(true, Ordering::Relaxed);
    }

    /// Prints a line on this instance's console, on behalf of `who`.
    pub(super) fn say(&self, who: Option<&str>, words: impl Display) {
        self.note(Happened::Said, &words);
        console::say(who, words);
    }

    /// Tells those who look at the lesson, if the job is shown to them.
    pub(crate) fn note(&self, event: Happened, value: impl Display) {
        if let Some(lane) = &self.lane {
            lane.note(event, value);
        }
    }

    /// How it is shown, for what outlives the job.
    pub(crate) fn lane(&self) -> Option<Arc<Lane>> {
        self.lane.clone()
    }

    /// The points, for what outlives the job.
    pub(crate) fn points(&self) -> &Points {
        &self.points
    }

    /// The job got in, at the first call, on behalf of `who`.
    pub(super) fn enter(&self, who: Option<&str>) {
        self.entered.get_or_init(|| {
            self.waiters.decrement(1.0);
            if self.on_console.load(Ordering::Relaxed) {
                self.say(who, "进来了");
            }
            if let Some(lane) = &self.lane {
                lane.enter();
            }
            Instant::now()
        });
    }

    /// The critical section ended, at the first call.
    pub(super) fn leave(&self) {
        self.left.get_or_init(Instant::now);
        if let Some(lane) = &self.lane {
            lane.leave();
        }
    }

    /// A try ended that began at `since`.
    pub(super) fn tried(&self, since: Instant) {
        let mut tries = self.tries.lock();
        if tries.len() == TRIES {
            tries.remove(0);
        }
        tries.push((since, Instant::now()));
    }

    /// When it was inside, from and to, in microseconds of Unix time by this machine's clock: comparable with other
    /// processes on the same machine. `None` for a strategy that has no critical section.
    #[must_use]
    pub fn inside_us(&self) -> Option<(u64, u64)> {
        let unix = unix_us();
        Some((unix(*self.entered.get()?), unix(*self.left.get()?)))
    }

    /// When each of its tries was under way, as [`inside_us`](Self::inside_us): from when it had read, or was to send what
    /// reads and writes at once, until its write was answered; all but the last were in vain. The last 20 of them; none of a
    /// strategy that has a critical section.
    #[must_use]
    pub fn tries_us(&self) -> Vec<(u64, u64)> {
        let unix = unix_us();
        let tries = self.tries.lock();
        tries
            .iter()
            .map(|(from, to)| (unix(*from), unix(*to)))
            .collect()
    }

    /// Whether it got in.
    #[must_use]
    pub fn has_entered(&self) -> bool {
        self.entered.get().is_some()
    }

    /// How long ago the job started.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long it took to get in; all the time so far where it did not.
    #[must_use]
    pub fn waited(&self) -> Duration {
        match self.entered.get() {
            Some(entered) => *entered - self.started,
            None => self.started.elapsed(),
        }
    }

    /// How long it has been inside.
    #[must_use]
    pub fn held(&self) -> Duration {
        self.entered.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// From a moment to its microseconds of Unix time, by this machine's clock as it stands now.
fn unix_us() -> impl Fn(Instant) -> u64 {
    let (now, unix) = (
        Instant::now(),
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    );
    move |then| u64::try_from(unix.saturating_sub(now - then).as_micros()).unwrap_or(u64::MAX)
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.has_entered() {
            self.waiters.decrement(1.0);
        }
    }
}
