//! A request for one piece: its parameters, the owner of its locks, and its observers.

use super::{Observation, Pause, Point, Points, points::Follower};
use crate::{
    ctx::Ctx,
    error::Error,
    section::names,
    visits::{VisitEventKind, VisitGuard},
};
use metrics::Gauge;
use oversell_lock::{Fence, Guard, LockError, Owner, redis::Lease};
use serde::{Serialize, Serializer};
use std::{
    fmt::Display,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::{Duration, Instant},
};
use utoipa::ToSchema;

/// The parameters of one request for a piece, as its sender gave them.
#[derive(Debug, Clone)]
pub struct Request {
    /// The product; the course has product 1.
    pub stock_id: i64,
    /// How long to stay inside the critical section, between reading and writing.
    pub hold: Duration,
    /// The longest wait for the lock.
    pub wait: Duration,
    /// The requested lease, instead of the strategy's own.
    pub lease: Option<Duration>,
    /// The name to show for the person who asks, on consoles, timelines and answers.
    pub who: Option<String>,
}

/// A request in progress: its parameters, its observers and the owner of its locks. A strategy is run with one.
#[derive(Debug)]
pub struct Job {
    pub request: Request,
    pub observation: Observation,
    owner: OnceLock<Owner>,
    /// The visitor's id, for their own lock; empty without one.
    visitor: Arc<str>,
}

/// A piece was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Deduction {
    /// The pieces left, as far as the strategy knows.
    #[schema(example = 4999)]
    pub remaining: Option<i64>,
    /// The fencing token that the write carried, if the lock has one.
    #[serde(serialize_with = "number")]
    #[schema(value_type = Option<u64>)]
    pub fence: Option<Fence>,
    /// The number of retries.
    #[schema(example = 0)]
    pub retries: u32,
    /// The lock's state at the unlock; absent without a lock, or if the server did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub lock: Option<LockState>,
}

/// Serializes the token as a plain number, or as `null`.
fn number<S: Serializer>(fence: &Option<Fence>, to: S) -> Result<S::Ok, S::Error> {
    fence.map(|fence| fence.0).serialize(to)
}

/// The state of a lock at its unlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockState {
    /// The unlock found the lock. A strategy whose lock names no owner cannot tell whose it was.
    Kept,
    /// Lost: its lease had ended, or it was deleted.
    Lost,
}

impl LockState {
    /// Releases a lock, and returns its state. An error is logged; `None` if it is another than that the lock was lost.
    pub(crate) async fn at_release(guard: Guard) -> Option<Self> {
        match guard.release().await {
            Ok(()) => Some(Self::Kept),
            Err(error) => {
                tracing::warn!(%error, "the lock was not released cleanly");
                matches!(error, LockError::Lost { .. }).then_some(Self::Lost)
            }
        }
    }
}

impl Deduction {
    /// A deduction that leaves `count` pieces, without retries, token or lock.
    pub fn remaining(count: i64) -> Self {
        Self { remaining: Some(count), ..Self::default() }
    }

    /// Sets the lock's state at an unlock, unless an earlier unlock found its lock lost.
    pub(crate) fn with_lock_state(self, found: Option<LockState>) -> Self {
        let lock = if self.lock == Some(LockState::Lost) { self.lock } else { found };
        Self { lock, ..self }
    }
}

impl From<Request> for Job {
    fn from(request: Request) -> Self {
        Self { observation: Observation::new(), request, owner: OnceLock::new(), visitor: Arc::default() }
    }
}

impl Job {
    /// A job that starts now, without a name and with the strategy's own lease.
    pub fn new(stock_id: i64, hold: Duration, wait: Duration) -> Self {
        Request { stock_id, hold, wait, lease: None, who: None }.into()
    }

    /// The same job, counted in `waiters` until it enters or is dropped. Call it once.
    pub fn with_waiters(mut self, waiters: Gauge) -> Self {
        waiters.increment(1.0);
        self.observation.waiters = waiters;
        self
    }

    /// The same job with this lease instead of the strategy's own, and this person's name.
    pub fn with_options(mut self, lease: Option<Duration>, who: Option<String>) -> Self {
        (self.request.lease, self.request.who) = (lease, who);
        self
    }

    /// The same job on behalf of the visitor with this id.
    pub fn with_visitor(mut self, visitor: &str) -> Self {
        self.visitor = visitor.into();
        self
    }

    /// The id of the visitor who asks; empty without one.
    pub(crate) fn visitor(&self) -> &str {
        &self.visitor
    }

    /// The same job, shown on the class page.
    pub fn with_visit(mut self, visit: VisitGuard) -> Self {
        self.observation.visit = Some(Arc::new(visit));
        self
    }

    /// The same job; `by` receives its points and commands, and can stop it. Replaces an earlier follower.
    pub(crate) fn with_follower(mut self, by: Follower) -> Self {
        self.observation.points = Points(Some(by));
        self
    }

    /// Makes the job stop at this point until the returned pause is resumed or dropped, for a test.
    pub fn pause_at(&mut self, point: Point) -> Pause {
        let (points, pause) = Points::paused_at(point);
        self.observation.points = points;
        pause
    }

    /// A job that starts now with the same request, points and visitor, but without name, visit or gauge: for a function
    /// that takes a job by value. It has the same owner only if that was [drawn](Self::owner) before.
    pub(crate) fn with_same_owner(&self) -> Self {
        let mut same = Self::from(Request { who: None, ..self.request.clone() });
        same.observation.points = self.observation.points.clone();
        same.owner = self.owner.clone();
        same.visitor = Arc::clone(&self.visitor);
        same
    }

    /// The owner of this job's locks: drawn at the first call, the same for all of them.
    pub(crate) fn owner(&self, ctx: &Ctx) -> Owner {
        *self.owner.get_or_init(|| ctx.process.owner())
    }

    /// The lease of a library lock, renewed every third of it: the requested one, else the configured one.
    pub fn watchdog_lease(&self, ctx: &Ctx) -> Lease {
        Lease::Watchdog(self.lease(ctx))
    }

    /// The requested lease, else the configured one.
    pub(crate) fn lease(&self, ctx: &Ctx) -> Duration {
        self.request.lease.unwrap_or_else(|| Duration::from_millis(ctx.config.lock.lease_ms))
    }

    /// The lease in etcd, which counts whole seconds, from 2 s on: at least as long as the requested one.
    pub(crate) fn etcd_lease(&self, ctx: &Ctx) -> Duration {
        let lease = self.lease(ctx);
        Duration::from_secs(lease.as_secs() + u64::from(lease.subsec_nanos() > 0)).max(Duration::from_secs(2))
    }

    /// How long the job may still wait, counted from its start. Once it has entered, the requested stay is added.
    pub fn wait_left(&self) -> Duration {
        let stay = if self.observation.has_entered() { self.request.hold } else { Duration::ZERO };
        (self.request.wait + stay).saturating_sub(self.observation.elapsed())
    }

    /// The error of a job that has waited for `what` as long as it may, or whose wait the server has ended.
    pub(crate) fn timed_out(&self, what: &str) -> Error {
        Error::Timeout { what: what.to_owned(), waited: self.request.wait.min(self.observation.elapsed()) }
    }

    /// Marks the first [entry](Self::enter) into the critical section, stays for `hold_ms` at each call, and returns the time at
    /// which this call began.
    pub async fn enter_and_stay(&self) -> Instant {
        let since = Instant::now();
        self.enter();
        if !self.request.hold.is_zero() {
            tokio::time::sleep(self.request.hold).await;
        }
        since
    }

    /// Records the entry, at the first call only: the time, the gauge of waiters, the console and the class page.
    pub fn enter(&self) {
        self.observation.enter(self.request.who.as_deref());
    }

    /// Records that the critical section ends now, and tells the class page; the unlock follows. A later call replaces the time.
    pub(crate) fn leave(&self) {
        self.observation.leave();
    }

    /// Records an attempt, from `since` to now, of a strategy without a critical section, and returns `outcome` unchanged.
    pub(crate) fn record_attempt<T>(&self, since: Instant, outcome: T) -> T {
        self.observation.record_attempt(since);
        outcome
    }

    /// Passes a point: continues at once, unless a replay or test stops the job there or lets it linger.
    pub(crate) async fn reach(&self, point: Point) {
        self.observation.points().reach(point).await;
    }

    /// Passes a point with a value to show.
    pub(crate) async fn reach_with(&self, point: Point, value: impl Display) {
        self.observation.points().reach_with(point, value).await;
    }

    /// Makes the console show the later entry of this job if the request has a name, and returns whether it has; loads give none.
    pub(crate) fn show_on_console(&self) -> bool {
        let named = self.request.who.is_some();
        if named {
            self.observation.on_console.store(true, Ordering::Relaxed);
        }
        named
    }

    /// Prints a line on this instance's console, with the name of the person who asks.
    pub fn say(&self, words: impl Display) {
        self.observation.say(self.request.who.as_deref(), words);
    }

    /// Tells the class page, if the job is shown there.
    pub(crate) fn report_to_class(&self, event: VisitEventKind, value: impl Display) {
        self.observation.report_to_class(event, value);
    }

    /// A Redis name of `docs/names.md`, for this stock: `lock`, or `lock:7` for stock 7.
    pub fn redis_name(&self, name: &str) -> String {
        names::in_redis(name, self.request.stock_id)
    }

    /// A ZooKeeper path of `docs/names.md`, for this stock: `/curator/lock`, or `/curator/lock-7`.
    pub fn zk_path(&self, path: &str) -> String {
        names::as_path(path, self.request.stock_id)
    }

    /// A prefix of `docs/names.md` in etcd, for this stock: `/distributed/etcd-lock`, or `/distributed/etcd-lock-7`.
    pub fn etcd_prefix(&self, prefix: &str) -> String {
        names::as_path(prefix, self.request.stock_id)
    }
}
