//! One run: driven by a task of its own, so that it goes on with or without watchers.

use super::run_lock::{RunElsewhere, acquire_run_lock};
use crate::{
    ctx::Ctx,
    http::{
        app::AppState,
        error::Error,
        queue::{Place, QueueEntry, Ticket, millis},
        under_way::InstancePoll,
        visitor::Visitor,
    },
    load::{self, ONE_INSTANCE, Plan, run::Snapshot},
    stock, stock_admin,
};
use futures::FutureExt;
use oversell_lock::Guard;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::sync::watch;
use utoipa::ToSchema;

/// How often watchers get the progress: people see a bar move this often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// Slower than [`PROGRESS_INTERVAL`], because each poll asks every instance.
const INSTANCE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The assumed duration of a run that has not measured anything yet.
const DEFAULT_DURATION: Duration = Duration::from_secs(5);

/// A run of load that waits, goes on, or has ended.
pub(in crate::http) struct Run {
    pub(in crate::http) ticket: Ticket,
    pub(in crate::http) about: RunProperties,
    /// The run of another instance for which it waits.
    elsewhere: Mutex<Option<RunElsewhere>>,
    updates: watch::Sender<RunUpdate>,
}

/// The fixed properties of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::http) struct RunProperties {
    #[schema(example = "0b0f1b1e-…")]
    id: String,
    /// The address of the client that started it.
    #[schema(example = "127.0.0.1")]
    by: String,
    /// The instance that sends the load.
    #[schema(example = "8000")]
    instance: String,
    #[schema(value_type = Object)]
    pub(in crate::http) plan: Plan,
    /// Where to watch it.
    #[schema(example = "/runs/0b0f1b1e-…/events")]
    pub(in crate::http) events: String,
}

#[derive(Debug, Clone, Default)]
pub(in crate::http) struct RunUpdate {
    pub(in crate::http) progress: Progress,
    pub(in crate::http) state: RunState,
}

/// How a run stands.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(in crate::http) struct Progress {
    #[serde(flatten)]
    snapshot: Snapshot,
    #[serde(flatten)]
    outside: OutsideState,
}

/// The state of a run outside of the load generator.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
struct OutsideState {
    /// The pieces left in the store; null if unknown.
    #[schema(example = 4211)]
    remaining: Option<i64>,
    /// The requests in progress by instance; the rest counts for an instance that does not answer.
    #[schema(example = json!({"8000": 1, "8100": 99, "8200": 0}))]
    under_way: BTreeMap<String, u64>,
}

/// Whether a run goes on, or how it ended.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(in crate::http) enum RunState {
    /// Others come first.
    #[default]
    Waiting,
    /// It goes on.
    Running,
    /// With this row of figures.
    Done {
        #[schema(value_type = Object)]
        row: Value,
    },
    /// Cancelled, with the figures so far.
    Cancelled {
        #[schema(value_type = Object)]
        row: Value,
    },
    /// Failed, with the reason.
    Failed { detail: String },
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RunView {
    #[serde(flatten)]
    pub(in crate::http) about: RunProperties,
    #[serde(flatten)]
    state: RunState,
    snapshot: Snapshot,
    #[serde(flatten)]
    outside: OutsideState,
    /// The remaining time, if known.
    left_ms: Option<u64>,
    /// Whether it is the visitor's own: only they cancel it.
    own: bool,
    /// How many runs end before it begins; 0 once it has begun.
    #[schema(example = 0)]
    position: usize,
    /// About how long it waits, in milliseconds.
    #[schema(example = 0)]
    starts_in_ms: u64,
    /// The run of another instance for which it waits.
    elsewhere: Option<RunElsewhere>,
}

impl RunState {
    fn failed(why: impl ToString) -> Self {
        Self::Failed { detail: why.to_string() }
    }
}

impl QueueEntry for Run {
    const MAX_UNFINISHED_OF_A_VISITOR: usize = 2;
    const MAX_UNFINISHED: usize = 100;
    const MAX_REMEMBERED_OF_A_VISITOR: usize = 100;
    const MAX_REMEMBERED: usize = 100;
    const NAMES: [&'static str; 2] = ["runs of one visitor", "runs of all visitors"];

    fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    fn is_watched(&self) -> bool {
        self.updates.receiver_count() > 0
    }

    fn has_ended(&self) -> bool {
        !matches!(self.updates.borrow().state, RunState::Waiting | RunState::Running)
    }

    fn time_left(&self) -> Duration {
        self.measured_time_left().unwrap_or(DEFAULT_DURATION)
    }

    fn not_found(id: &str) -> Error {
        Error::NoRun(id.to_owned())
    }
}

impl Run {
    /// A new run of this plan, which waits; it ends when the instance stops.
    pub(super) fn new(app: &AppState, plan: Plan, by: String, visitor: Visitor) -> Self {
        let ticket = Ticket::new(visitor, true, app.stopping.child_token());
        Self {
            about: RunProperties {
                id: ticket.id.to_string(),
                by,
                instance: app.ctx.instance.clone(),
                plan,
                events: format!("/runs/{}/events", ticket.id),
            },
            ticket,
            elsewhere: Mutex::default(),
            updates: watch::Sender::new(RunUpdate::default()),
        }
    }

    /// Marks the run as running from now on, and as waiting for no other instance.
    pub(super) fn begin(&self) {
        self.ticket.begin();
        *self.elsewhere.lock() = None;
        self.updates.send_modify(|update| update.state = RunState::Running);
    }

    pub(super) fn fail(&self, why: impl ToString) {
        self.updates.send_modify(|update| update.state = RunState::failed(why));
    }

    pub(super) fn note_elsewhere(&self, run: RunElsewhere) {
        *self.elsewhere.lock() = Some(run);
    }

    /// The remaining time; `None` unless it runs and has measured something.
    fn measured_time_left(&self) -> Option<Duration> {
        let elapsed = self.ticket.elapsed()?;
        let update = self.updates.borrow();
        let left = left_ms(&update.progress.snapshot, elapsed);
        left.filter(|_| matches!(update.state, RunState::Running)).map(Duration::from_millis)
    }

    /// The updates of the run, from the newest on.
    pub(in crate::http) fn watch(&self) -> watch::Receiver<RunUpdate> {
        self.updates.subscribe()
    }

    /// The run at this place of the queue, as answers show it to this visitor.
    pub(super) fn view(&self, place: Place, visitor: &Visitor) -> RunView {
        let left_ms = self.measured_time_left().map(millis);
        let RunUpdate { progress, state } = self.updates.borrow().clone();
        let waits = matches!(state, RunState::Waiting);
        let elsewhere = self.elsewhere.lock().clone().filter(|_| waits);
        let place = if waits { place } else { Place::default() };
        RunView {
            about: self.about.clone(),
            left_ms,
            state,
            snapshot: progress.snapshot,
            outside: progress.outside,
            own: self.ticket.visitor == *visitor,
            position: place.position + usize::from(elsewhere.is_some()),
            starts_in_ms: millis(place.starts_in),
            elsewhere,
        }
    }

    /// As the function [`acquire_run_lock`], for this run.
    pub(super) async fn acquire_run_lock(&self, ctx: &Ctx) -> Result<Option<Guard>, RunElsewhere> {
        acquire_run_lock(ctx, &self.about.id, &self.about.plan.strategy, &self.about.by).await
    }

    /// Runs the plan to its end and publishes how it goes; releases the run lock before it publishes the end.
    pub(super) async fn drive(self: Arc<Self>, app: AppState, run_lock: Option<Guard>) {
        let (sender, mut snapshots) = watch::channel(Snapshot::default());
        let work = AssertUnwindSafe(load::run::run(&self.about.plan, &sender, &self.ticket.cancel)).catch_unwind();
        let ended = tokio::select! {
            ended = work => ended,
            () = self.publish_progress(&app, snapshots.clone()) => return,
        };
        let state = match ended {
            Ok(Ok(row)) => match serde_json::to_value(row) {
                Ok(row) if self.ticket.cancel.is_cancelled() => RunState::Cancelled { row },
                Ok(row) => RunState::Done { row },
                Err(error) => RunState::failed(error),
            },
            Ok(Err(failure)) => RunState::failed(failure),
            Err(_) => RunState::failed("the load generator panicked; the log says where"),
        };
        let progress = self.progress(&app.ctx, &mut snapshots, BTreeMap::new()).await;
        if let Some(run_lock) = run_lock
            && let Err(error) = run_lock.release().await
        {
            tracing::warn!(%error, "the lock of the run was not released cleanly");
        }
        self.updates.send_replace(RunUpdate { progress, state });
    }

    /// Publishes the progress every [`PROGRESS_INTERVAL`]; never returns.
    async fn publish_progress(&self, app: &AppState, mut snapshots: watch::Receiver<Snapshot>) {
        let (under_way, latest) = watch::channel(BTreeMap::new());
        let polling = self.poll_instances(app, snapshots.clone(), under_way);
        let tell = async {
            let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let under_way = latest.borrow().clone();
                let progress = self.progress(&app.ctx, &mut snapshots, under_way).await;
                let state = RunState::Running;
                self.updates.send_replace(RunUpdate { progress, state });
            }
        };
        tokio::join!(polling, tell);
    }

    /// Polls the instances for their requests and never returns; if the load goes to this instance alone, all unanswered ones
    /// are its own. Runs beside [`publish_progress`](Self::publish_progress), which never waits.
    async fn poll_instances(
        &self,
        app: &AppState,
        snapshots: watch::Receiver<Snapshot>,
        under_way: watch::Sender<BTreeMap<String, u64>>,
    ) {
        let own = self.about.plan.target == ONE_INSTANCE;
        let mut instances = InstancePoll::new(&app.ctx.config.cluster.instances);
        let mut ticks = tokio::time::interval(INSTANCE_POLL_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let sent = snapshots.borrow().unanswered;
            under_way.send_replace(match own {
                true => BTreeMap::from([(self.about.instance.clone(), sent)]),
                false => instances.poll(self.about.plan.stock_id, sent).await,
            });
        }
    }

    /// The progress now, with the pieces left in the store.
    async fn progress(&self, ctx: &Ctx, snapshots: &mut watch::Receiver<Snapshot>, under_way: BTreeMap<String, u64>) -> Progress {
        let remaining = match stock::find(&self.about.plan.strategy) {
            Some(strategy) => stock_admin::count(ctx, strategy.spec.store, self.about.plan.stock_id).await.ok(),
            None => None,
        };
        Progress { snapshot: snapshots.borrow_and_update().clone(), outside: OutsideState { remaining, under_way } }
    }
}

/// The remaining milliseconds at the mean rate so far; `None` before the first sample.
fn left_ms(snapshot: &Snapshot, elapsed: Duration) -> Option<u64> {
    let each = elapsed.checked_div(u32::try_from(snapshot.samples).ok()?)?;
    let left = each * u32::try_from(snapshot.planned.saturating_sub(snapshot.samples)).ok()?;
    Some(millis(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_estimated_from_the_first_sample_on() {
        let at = |samples| Snapshot { samples, planned: 100, ..Snapshot::default() };
        assert_eq!(left_ms(&at(0), Duration::from_secs(3)), None);
        assert_eq!(left_ms(&at(25), Duration::from_secs(1)), Some(3000));
        assert_eq!(left_ms(&at(100), Duration::from_secs(4)), Some(0));
    }
}
