//! Runs of load from the page: one at a time, so that a rate means something; the others wait in a [`Queue`].
//!
//! 1. A run takes a place behind all that were asked for before.
//! 2. The first one begins once no other instance has one under way (`run_lock.rs`).
//! 3. One that waits, that nobody watches and that its visitor does not ask for, gives its place up.
//!
//! `run.rs` is one run; `routes/runs.rs` has the handlers.

pub(super) mod run;
mod run_lock;

use super::{
    app::AppState,
    error::Error,
    queue::{Queue, QueueEntry},
    visitor::Visitor,
};
use crate::{ctx::Ctx, load::Plan};
use oversell_lock::Guard;
use run::{Run, RunView};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The runs of this instance.
pub(super) type Runs = Queue<Run>;

impl Runs {
    /// Starts a run, or gives it a place in the queue; returns once that is decided. If the caller is dropped, the run goes on.
    /// Errors: as [`Queue::add`].
    pub(super) async fn start(
        self: &Arc<Self>,
        app: &AppState,
        plan: Plan,
        by: String,
        visitor: Visitor,
    ) -> Result<Arc<Run>, Error> {
        let run = Arc::new(Run::new(app, plan, by, visitor));
        self.add(&run)?;
        let (sender, first_try) = oneshot::channel();
        let (runs, app, waiting) = (Arc::clone(self), app.clone(), Arc::clone(&run));
        tokio::spawn(async move {
            match runs.wait_for_turn(&app.ctx, &waiting, sender).await {
                Ok(run_lock) => waiting.drive(app, run_lock).await,
                Err(why) => waiting.fail(why),
            }
            runs.ended.notify_waiters();
        });
        // An error means that it has ended already.
        drop(first_try.await);
        Ok(run)
    }

    /// Waits until the run may begin, alone over all instances, and marks it as running. Returns the run lock; `None` if MySQL
    /// does not give one. `first_try` is sent or dropped after the first attempt.
    /// Errors: as [`QueueEntry::wait_in_queue`].
    async fn wait_for_turn(&self, ctx: &Ctx, run: &Run, first_try: oneshot::Sender<()>) -> Result<Option<Guard>, &'static str> {
        let mut first_try = Some(first_try);
        loop {
            let end = self.ended.notified();
            if self.before(run).is_empty() {
                match run.acquire_run_lock(ctx).await {
                    Ok(run_lock) => {
                        run.begin();
                        return Ok(run_lock);
                    }
                    Err(other) => run.note_elsewhere(other),
                }
            }
            if let Some(sender) = first_try.take() {
                // The client may have hung up.
                sender.send(()).ok();
            }
            run.wait_in_queue(end).await?;
        }
    }

    pub(super) fn view(&self, run: &Run, visitor: &Visitor) -> RunView {
        run.view(self.place_of(run), visitor)
    }

    /// The visitor's unfinished run; else the run that is under way, whosever it is; else the visitor's last one.
    pub(super) fn current(&self, visitor: &Visitor) -> Option<Arc<Run>> {
        let own = self.of_visitor(visitor);
        let unfinished = own.iter().rfind(|run| !run.has_ended()).cloned();
        let under_way = || self.unfinished().into_iter().find(|run| !run.is_waiting());
        unfinished.or_else(under_way).or_else(|| own.first().cloned())
    }
}
