//! Runs of load from the page: one at a time, so that a rate means something; the others wait in a queue.
//!
//! 1. A run takes a place behind all that were asked for before.
//! 2. The first one begins once no other instance has one under way (`run_lock.rs`).
//! 3. One that waits, that nobody watches and that its visitor does not ask for, gives its place up.
//!
//! nginx sends all requests about runs to one instance, so the queue is in its memory.
//!
//! `run.rs` is one run; `routes.rs` has the handlers.

pub(super) mod routes;
mod run;
mod run_lock;

use crate::http::routes::prelude::*;
use crate::{ctx::Ctx, http::visitor::Visitor, load::Plan};
use oversell_lock::Guard;
use parking_lot::Mutex;
use run::{Run, RunView};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

/// The most unfinished runs of one visitor; one more is refused.
const MAX_UNFINISHED_OF_A_VISITOR: usize = 2;
/// The most unfinished runs of all visitors; one more is refused.
const MAX_UNFINISHED: usize = 100;
const MAX_REMEMBERED: usize = 100;
/// A visitor has left if nobody has watched their waiting run, and they have not asked for it, for this long: an open page asks
/// every 3 s.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a waiting run tries again to get its turn from another instance, and checks whether its visitor has left.
const TURN_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The assumed duration of a run that has not measured anything yet.
const DEFAULT_DURATION: Duration = Duration::from_secs(5);

/// The runs of this instance, those that ended last among them, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(in crate::http) struct Runs {
    all: Mutex<Vec<Arc<Run>>>,
    /// Told when a run has ended.
    changed: Notify,
}

impl Runs {
    /// Starts a run, or gives it a place in the queue; returns once that is decided. If the caller is dropped, the run goes on.
    /// Errors: as [`enqueue`](Self::enqueue).
    async fn start(
        self: &Arc<Self>,
        app: &AppState,
        plan: Plan,
        by: String,
        visitor: Visitor,
    ) -> Result<Arc<Run>, Error> {
        let run = Arc::new(Run::new(app, plan, by, visitor));
        self.enqueue(&run)?;
        let (sender, first_try) = oneshot::channel();
        let (runs, app, waiting) = (Arc::clone(self), app.clone(), Arc::clone(&run));
        tokio::spawn(async move {
            if let Some(run_lock) = runs.wait_for_turn(&app.ctx, &waiting, sender).await {
                waiting.drive(app, run_lock).await;
            }
            runs.changed.notify_waiters();
        });
        // An error means that it has ended already.
        drop(first_try.await);
        Ok(run)
    }

    /// Adds a run at the end of the queue; of too many ended runs the oldest is forgotten.
    /// Errors: the visitor, or all together, have too many unfinished ones.
    fn enqueue(&self, run: &Arc<Run>) -> Result<(), Error> {
        let mut all = self.all.lock();
        let waiting = || all.iter().filter(|run| !run.has_ended());
        let own = waiting().filter(|other| other.visitor == run.visitor);
        let (what, count, most) = match own.count() {
            own if own >= MAX_UNFINISHED_OF_A_VISITOR => {
                ("runs of one visitor", own, MAX_UNFINISHED_OF_A_VISITOR)
            }
            _ => ("runs of all visitors", waiting().count(), MAX_UNFINISHED),
        };
        if count >= most {
            return Err(Error::TooMany { what, most });
        }
        let ended = all.iter().filter(|run| run.has_ended()).count();
        if ended >= MAX_REMEMBERED
            && let Some(oldest) = all.iter().position(|run| run.has_ended())
        {
            all.remove(oldest);
        }
        all.push(Arc::clone(run));
        Ok(())
    }

    /// Waits until the run may begin, alone over all instances, and marks it as running. Returns the run lock, `Some(None)` if
    /// MySQL does not give one; `None` if the run was cancelled or its visitor has left, and so it failed. `first_try` is sent or
    /// dropped after the first attempt.
    async fn wait_for_turn(
        &self,
        ctx: &Ctx,
        run: &Run,
        first_try: oneshot::Sender<()>,
    ) -> Option<Option<Guard>> {
        let mut first_try = Some(first_try);
        loop {
            let changed = self.changed.notified();
            if self.runs_before(run).is_empty() {
                match run.acquire_run_lock(ctx).await {
                    Ok(run_lock) => {
                        run.begin();
                        return Some(run_lock);
                    }
                    Err(other) => run.note_elsewhere(other),
                }
            }
            if let Some(sender) = first_try.take() {
                // The client may have hung up.
                sender.send(()).ok();
            }
            tokio::select! {
                () = run.cancelled() => {
                    run.fail("it was cancelled before it began");
                    return None;
                }
                _ = timeout(TURN_CHECK_INTERVAL, changed) => {}
            }
            if run.check_unwatched() > LEAVE_TIMEOUT {
                run.fail("its visitor has left the queue");
                return None;
            }
        }
    }

    /// The unfinished runs before this one.
    fn runs_before(&self, run: &Run) -> Vec<Arc<Run>> {
        let all = self.all.lock();
        let before = all
            .iter()
            .take_while(|other| other.about.id != run.about.id);
        before.filter(|run| !run.has_ended()).cloned().collect()
    }

    fn view(&self, run: &Run, visitor: &Visitor) -> RunView {
        let before = self.runs_before(run);
        run.view(before.len(), total_time(&before), *visitor == run.visitor)
    }

    /// The runs that wait for their turn: visitor, strategy, and about how long.
    pub(in crate::http) fn waiting(&self) -> Vec<(Visitor, String, Duration)> {
        let waiting = self.all_waiting().into_iter().map(|run| {
            let strategy = run.about.plan.strategy.clone();
            (
                run.visitor.clone(),
                strategy,
                total_time(&self.runs_before(&run)),
            )
        });
        waiting.collect()
    }

    /// Cancels all runs that wait for their turn. Returns how many.
    pub(in crate::http) fn end_waiting(&self) -> usize {
        let waiting = self.all_waiting();
        waiting.iter().inspect(|run| run.cancel()).count()
    }

    /// The runs that wait for their turn, the oldest request first.
    fn all_waiting(&self) -> Vec<Arc<Run>> {
        let all = self.all.lock();
        let waiting = all.iter().filter(|run| run.is_waiting());
        waiting.cloned().collect()
    }

    /// The visitor's unfinished run; else the run that is under way, whosever it is; else the visitor's last one.
    fn current(&self, visitor: &Visitor) -> Option<Arc<Run>> {
        let all = self.all.lock();
        let own = || all.iter().filter(|run| run.visitor == *visitor);
        let found = own().find(|run| !run.has_ended());
        let found = found.or_else(|| all.iter().find(|run| run.is_running()));
        found.or_else(|| own().next_back()).cloned()
    }

    /// A run of any visitor, a remembered one too; [`Error::NoRun`] if there is none.
    fn find(&self, id: &str) -> Result<Arc<Run>, Error> {
        let all = self.all.lock();
        let found = all.iter().find(|run| run.about.id == id);
        found.cloned().ok_or_else(|| Error::NoRun(id.to_owned()))
    }

    /// A run of this visitor; for other visitors it does not exist.
    fn find_own(&self, id: &str, visitor: &Visitor) -> Result<Arc<Run>, Error> {
        match self.find(id)? {
            own if own.visitor == *visitor => Ok(own),
            _ => Err(Error::NoRun(id.to_owned())),
        }
    }
}

/// About how long these runs still take, one after the other; one without an estimate counts [`DEFAULT_DURATION`].
fn total_time(runs: &[Arc<Run>]) -> Duration {
    let left = runs
        .iter()
        .map(|run| run.time_left().unwrap_or(DEFAULT_DURATION));
    left.sum()
}
