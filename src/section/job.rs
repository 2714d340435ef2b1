//! One request for one piece: what is asked, on whose behalf it takes locks, and who watches it.

use super::{Observation, Pause, Point, points::Reached};
use crate::{
    ctx::Ctx,
    error::Error,
    section::names,
    visits::{Happened, Lane},
};
use metrics::Gauge;
use oversell_lock::{Fence, Owner, redis::Lease};
use serde::Serialize;
use std::{
    fmt::Display,
    sync::OnceLock,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};
use utoipa::ToSchema;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
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
}

/// A request that is being carried out.
#[derive(Debug)]
pub struct Job {
    /// What is asked for.
    pub request: Request,
    /// What is seen of it.
    pub seen: Observation,
    owner: OnceLock<Owner>,
}

/// A piece was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deducted {
    /// What the strategy believes is left, where it has seen a number.
    pub remaining: Option<i64>,
    /// The fencing token that the write carried.
    pub fence: Option<Fence>,
    /// How often it was tried again.
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
    pub(crate) fn unlocked(self, found: Option<LockState>) -> Self {
        let lock = if self.lock == Some(LockState::Lost) {
            self.lock
        } else {
            found
        };
        Self { lock, ..self }
    }
}

impl Request {
    /// For a product, without a name and with the strategy's own lease.
    #[must_use]
    pub fn new(stock_id: i64, hold: Duration, wait: Duration) -> Self {
        Self {
            stock_id,
            hold,
            wait,
            lease: None,
            who: None,
        }
    }
}

impl From<Request> for Job {
    fn from(request: Request) -> Self {
        Self {
            seen: Observation::new(),
            request,
            owner: OnceLock::new(),
        }
    }
}

impl Job {
    /// A job that starts now.
    #[must_use]
    pub fn new(stock_id: i64, hold: Duration, wait: Duration) -> Self {
        Request::new(stock_id, hold, wait).into()
    }

    /// The same, counted among `waiters` until it gets in or is dropped.
    #[must_use]
    pub fn counted(mut self, waiters: Gauge) -> Self {
        self.seen.count(waiters);
        self
    }

    /// The same, with this lease instead of the strategy's own, and on behalf of this person.
    #[must_use]
    pub fn asked(mut self, lease: Option<Duration>, who: Option<String>) -> Self {
        (self.request.lease, self.request.who) = (lease, who);
        self
    }

    /// The same, shown to those who look at the lesson.
    #[must_use]
    pub fn seen_as(mut self, lane: Lane) -> Self {
        self.seen.show(lane);
        self
    }

    /// The same, followed by a replay: `seen` is told of each point, and the job stops at those among `stops`; at each
    /// point of its work it stays for `linger`.
    #[must_use]
    pub fn followed(
        mut self,
        seen: mpsc::UnboundedSender<Reached>,
        stops: watch::Receiver<Vec<Point>>,
        linger: Duration,
    ) -> Self {
        self.seen.follow(seen, stops, linger);
        self
    }

    /// Stops the job at a point of its strategy, for a test. The strategies say in their code which points they have.
    pub fn pause_at(&mut self, point: Point) -> Pause {
        self.seen.pause_at(point)
    }

    /// The same job for a function that takes it whole: its points, its lease and its owner are the same.
    pub(crate) fn same(&self) -> Self {
        let mut same = Self::from(Request {
            who: None,
            ..self.request.clone()
        });
        same.seen.share_points(&self.seen);
        same.owner = self.owner.clone();
        same
    }

    /// The owner of the locks that this job takes: one, however often it takes them.
    pub(crate) fn owner(&self, ctx: &Ctx) -> Owner {
        *self.owner.get_or_init(|| ctx.process.owner())
    }

    /// The lease of a lock of the library, renewed every third: the one that was asked for, else the configured one.
    #[must_use]
    pub fn watchdog(&self, ctx: &Ctx) -> Lease {
        Lease::Watchdog(self.leased(ctx))
    }

    /// The lease that was asked for, else the configured one.
    pub(crate) fn leased(&self, ctx: &Ctx) -> Duration {
        self.request
            .lease
            .unwrap_or_else(|| Duration::from_millis(ctx.config.lock.lease_ms))
    }

    /// What is left of the wait. The stay that was asked for is no part of it.
    #[must_use]
    pub fn wait_left(&self) -> Duration {
        let stay = if self.seen.has_entered() {
            self.request.hold
        } else {
            Duration::ZERO
        };
        (self.request.wait + stay).saturating_sub(self.seen.elapsed())
    }

    /// The error of a job that has waited for `what` as long as it may, or whose wait somebody else has ended.
    pub(crate) fn not_had(&self, what: &str) -> Error {
        Error::NotHad {
            what: what.to_owned(),
            waited: self.request.wait.min(self.seen.elapsed()),
        }
    }

    /// Inside the critical section: [enters](Self::enter), then stays as long as was asked. Since when.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn inside(&self) -> Instant {
        let since = Instant::now();
        self.enter();
        if !self.request.hold.is_zero() {
            tokio::time::sleep(self.request.hold).await;
        }
        since
    }

    /// Marks the time at which it got in, at the first call.
    pub fn enter(&self) {
        self.seen.enter(self.request.who.as_deref());
    }

    /// Marks the end of the critical section, where there is one: what follows gives the lock back.
    pub(crate) fn leave(&self) {
        self.seen.leave();
    }

    /// Marks the end of a try, where the strategy has no critical section, and hands on what it came to.
    pub(crate) fn tried<T>(&self, since: Instant, outcome: T) -> T {
        self.seen.tried(since);
        outcome
    }

    /// Comes to a point: goes on at once, unless it was asked to stop there.
    pub(crate) async fn at(&self, point: Point) {
        self.seen.points().at(point).await;
    }

    /// Comes to a point, having `value`.
    pub(crate) async fn tell(&self, point: Point, value: impl Display) {
        self.seen.points().tell(point, value).await;
    }

    /// From now on the console says when the job gets in, where it is known who asks: a load gives no name, and prints
    /// nothing. Whether that is so.
    pub(crate) fn print(&self) -> bool {
        let named = self.request.who.is_some();
        if named {
            self.seen.print();
        }
        named
    }

    /// Prints a line on this instance's console, on behalf of who asks.
    pub fn say(&self, words: impl Display) {
        self.seen.say(self.request.who.as_deref(), words);
    }

    /// Tells those who look at the lesson, if the job is shown to them.
    pub(crate) fn note(&self, event: Happened, value: impl Display) {
        self.seen.note(event, value);
    }

    /// A Redis name of `docs/names.md`, for this stock: `lock`, or `lock:7` for stock 7.
    #[must_use]
    pub fn redis_name(&self, name: &str) -> String {
        names::in_redis(name, self.request.stock_id)
    }

    /// A ZooKeeper path of `docs/names.md`, for this stock: `/curator/lock`, or `/curator/lock-7`.
    #[must_use]
    pub fn zk_path(&self, path: &str) -> String {
        names::in_zookeeper(path, self.request.stock_id)
    }
}
