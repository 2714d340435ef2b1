//! Runs of load from the page: one at a time, watched by as many as want to.
//!
//! `run.rs` is one run; `alone.rs` keeps those of several instances apart; `routes.rs` has the handlers.

mod alone;
pub(super) mod routes;
mod run;

use crate::http::routes::prelude::*;
use crate::load::Plan;
use parking_lot::Mutex;
use run::Run;

/// The current run of this instance, or the last one.
#[derive(Debug, Default)]
pub(in crate::http) struct Runs {
    latest: Mutex<Option<Arc<Run>>>,
    /// Held while one is started.
    starting: tokio::sync::Mutex<()>,
}

impl Runs {
    /// Starts a run, unless one is running, here or in another instance.
    async fn start(&self, app: &AppState, plan: Plan, by: String) -> Result<Arc<Run>, Error> {
        let _one_at_a_time = self.starting.lock().await;
        if let Some(running) = self.latest().filter(|run| run.is_running()) {
            return Err(running.in_progress());
        }
        let run = Arc::new(Run::new(app, plan, by));
        let alone = run.alone(&app.ctx).await?;
        tokio::spawn(Arc::clone(&run).drive(app.clone(), alone));
        *self.latest.lock() = Some(Arc::clone(&run));
        Ok(run)
    }

    fn latest(&self) -> Option<Arc<Run>> {
        self.latest.lock().clone()
    }

    fn find(&self, id: &str) -> Result<Arc<Run>, Error> {
        self.latest()
            .filter(|run| run.about.id == id)
            .ok_or_else(|| Error::NoRun(id.to_owned()))
    }
}
