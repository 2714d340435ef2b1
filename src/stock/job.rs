//! One request for one piece: which stock, how long to wait and to stay inside, and when it got in.

use super::points::{Pause, Points, Sight};
use crate::{
    console,
    ctx::Ctx,
    error::Error,
    visits::{Happened, Lane},
};
use metrics::Gauge;
use oversell_lock::{Fence, Owner, redis::Lease};
use parking_lot::Mutex;
use serde::Serialize;
use std::{
    fmt::Display,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{mpsc, watch};
use utoipa::ToSchema;

/// So many tries are kept of a job, the last ones.
const TRIES: usize = 20;

/// What a strategy is asked to do.
#[derive(Debug)]
pub struct Job {
    /// Which product; the course's is 1.
    pub stock_id: i64,
    /// How long to stay inside the critical section, between reading and writing.
    pub hold: Duration,
    /// The longest wait for the lock.
    pub wait: Duration,
    /// The lease that was asked for, instead of the strategy's own.
    pub lease: Option<Duration>,
    /// Who asks, as a person's name: for consoles, timelines and answers.
    pub who: Option<String>,
    started: Instant,
    entered: OnceLock<Instant>,
    left: OnceLock<Instant>,
    tries: Mutex<Vec<(Instant, Instant)>>,
    followed: AtomicBool,
    waiters: Gauge,
    owner: OnceLock<Owner>,
    points: Points,
    lane: Option<Arc<Lane>>,
}

/// A piece was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deducted {
    /// What the strategy believes is left, where it has seen a number.
    pub remaining: Option<i64>,
    /// The fencing token that the write carried.
    pub fence: Option<Fence>,
    /// How often it was tried anew.
    pub retries: u32,
    /// What the unlock found; none where there is no lock, or the server did not say.
    pub lock: Option<LockState>,
}

/// What an unlock found of its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockState {
    /// It was still ours.
    Kept,
    /// It was no longer ours: its lease had ended, or somebody had taken it away.
    Lost,
}

impl Deducted {
    /// With what an unlock found. Where there were several, one that found its lock lost is what counts.
    pub(super) fn unlocked(self, found: Option<LockState>) -> Self {
        let lock = if self.lock == Some(LockState::Lost) {
            self.lock
        } else {
            found
        };
        Self { lock, ..self }
    }
}

impl Job {
    /// A job that starts now.
    #[must_use]
    pub fn new(stock_id: i64, hold: Duration, wait: Duration) -> Self {
        Self {
            stock_id,
            hold,
            wait,
            lease: None,
            who: None,
            started: Instant::now(),
            entered: OnceLock::new(),
            left: OnceLock::new(),
            tries: Mutex::default(),
            followed: AtomicBool::new(false),
            waiters: Gauge::noop(),
            owner: OnceLock::new(),
            points: Points::default(),
            lane: None,
        }
    }

    /// The same, counted among `waiters` until it gets in or is dropped.
    #[must_use]
    pub fn counted(mut self, waiters: Gauge) -> Self {
        waiters.increment(1.0);
        self.waiters = waiters;
        self
    }

    /// The same, with this lease instead of the strategy's own, and on behalf of this person.
    #[must_use]
    pub fn asked(mut self, lease: Option<Duration>, who: Option<String>) -> Self {
        (self.lease, self.who) = (lease, who);
        self
    }

    /// The same, seen by those who look at the lesson.
    #[must_use]
    pub fn seen_as(mut self, lane: Lane) -> Self {
        self.lane = Some(Arc::new(lane));
        self
    }

    /// How it is seen, for what outlives the job.
    pub(crate) fn lane(&self) -> Option<Arc<Lane>> {
        self.lane.clone()
    }

    /// Prints a line on this instance's console, on behalf of who asks.
    pub fn say(&self, words: impl Display) {
        self.note(Happened::Said, &words);
        console::say(self.who.as_deref(), words);
    }

    /// Tells those who look at the lesson, if it is for them.
    pub(crate) fn note(&self, event: Happened, value: impl Display) {
        if let Some(lane) = &self.lane {
            lane.note(event, value);
        }
    }

    /// From now on prints when it gets in, where it is known who asks: a load, which says nothing, prints nothing. Whether
    /// that is so.
    pub(super) fn follow(&self) -> bool {
        self.followed.store(self.who.is_some(), Ordering::Relaxed);
        self.who.is_some()
    }

    /// The lease of a lock of the library, renewed every third: the one that was asked for, else the configured one.
    #[must_use]
    pub fn watchdog(&self, ctx: &Ctx) -> Lease {
        Lease::Watchdog(self.leased(ctx))
    }

    /// The lease that was asked for, else the configured one.
    pub(crate) fn leased(&self, ctx: &Ctx) -> Duration {
        self.lease
            .unwrap_or_else(|| Duration::from_millis(ctx.config.lock.lease_ms))
    }

    /// What is left of the wait. The stay that was asked for is no part of it.
    #[must_use]
    pub fn wait_left(&self) -> Duration {
        let stay = if self.has_entered() {
            self.hold
        } else {
            Duration::ZERO
        };
        (self.wait + stay).saturating_sub(self.started.elapsed())
    }

    /// The job has waited for `what` as long as it may, or somebody else has ended its wait.
    pub(crate) fn not_had(&self, what: &str) -> Error {
        Error::NotHad {
            what: what.to_owned(),
            waited: self.wait.min(self.started.elapsed()),
        }
    }

    /// Inside the critical section: [enters](Self::enter), then stays as long as was asked. Since when.
    ///
    /// Cancel safety: safe; it only waits.
    pub async fn inside(&self) -> Instant {
        let since = Instant::now();
        self.enter();
        if !self.hold.is_zero() {
            tokio::time::sleep(self.hold).await;
        }
        since
    }

    /// The same job for a function that takes it whole: its points, its lease and its owner are the same.
    pub(crate) fn same(&self) -> Self {
        let mut same = Self::new(self.stock_id, self.hold, self.wait);
        (same.lease, same.points, same.owner) =
            (self.lease, self.points.clone(), self.owner.clone());
        same
    }

    /// Marks the time at which it got in, at the first call.
    pub fn enter(&self) {
        self.entered.get_or_init(|| {
            self.waiters.decrement(1.0);
            if self.followed.load(Ordering::Relaxed) {
                self.say("进来了");
            }
            if let Some(lane) = &self.lane {
                lane.enter();
            }
            Instant::now()
        });
    }

    /// Marks the end of the critical section, where there is one: what follows gives the lock back.
    pub(crate) fn leave(&self) {
        self.left.get_or_init(Instant::now);
        if let Some(lane) = &self.lane {
            lane.leave();
        }
    }

    /// Marks the end of a try, where the strategy has no critical section, and hands on what it came to.
    pub(super) fn tried<T>(&self, since: Instant, outcome: T) -> T {
        let mut tries = self.tries.lock();
        if tries.len() == TRIES {
            tries.remove(0);
        }
        tries.push((since, Instant::now()));
        outcome
    }

    /// When it was inside, from and to, in microseconds of Unix time by this machine's clock: what others on the same
    /// machine can be compared with. `None` for a strategy that has no critical section.
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
        self.tries
            .lock()
            .iter()
            .map(|(from, to)| (unix(*from), unix(*to)))
            .collect()
    }

    /// Who this job is where it takes a lock: one owner, however often it takes it.
    pub(crate) fn owner(&self, ctx: &Ctx) -> Owner {
        *self.owner.get_or_init(|| ctx.process.owner())
    }

    /// Stops the job at a named point of its strategy, for a replay. Strategies say in their code which points they
    /// come by.
    pub fn pause_at(&mut self, point: &'static str) -> Pause {
        self.points.pause_at(point)
    }

    /// The same, followed by a replay: `seen` is told of each point, and the job stands still at those among `stops`; while
    /// it works it stays for `linger` at each.
    #[must_use]
    pub fn followed(
        mut self,
        seen: mpsc::UnboundedSender<Sight>,
        stops: watch::Receiver<Vec<String>>,
        linger: Duration,
    ) -> Self {
        self.points.follow(seen, stops, linger);
        self
    }

    /// Comes by a named point: goes on at once, unless it was asked to stop there.
    pub(crate) async fn at(&self, point: &'static str) {
        self.points.at(point).await;
    }

    /// Comes by a named point, having `value`.
    pub(crate) async fn tell(&self, point: &'static str, value: impl Display) {
        self.points.tell(point, value).await;
    }

    /// The points, for what outlives the job.
    pub(crate) fn points(&self) -> &Points {
        &self.points
    }

    /// Whether it got in.
    #[must_use]
    pub fn has_entered(&self) -> bool {
        self.entered.get().is_some()
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

    /// A Redis name of ARCHITECTURE.md ("Names"), for this stock: `lock`, or `lock:7` for stock 7.
    #[must_use]
    pub fn redis_name(&self, name: &str) -> String {
        super::redis_key::for_stock(name, self.stock_id)
    }

    /// A ZooKeeper path of ARCHITECTURE.md ("Names"), for this stock: `/curator/lock`, or `/curator/lock-7`.
    #[must_use]
    pub fn zk_path(&self, path: &str) -> String {
        zk_path(path, self.stock_id)
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

/// A ZooKeeper path of ARCHITECTURE.md ("Names") for this product.
pub(crate) fn zk_path(path: &str, stock_id: i64) -> String {
    if stock_id == 1 {
        path.to_owned()
    } else {
        format!("{path}-{stock_id}")
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.has_entered() {
            self.waiters.decrement(1.0);
        }
    }
}
