//! Runs of load from the page: one at a time, watched by as many as want to.
//!
//! `run.rs` is one run; `routes.rs` has the handlers.

mod routes;
mod run;

pub(in crate::http) use routes::{
    __path_cancel, __path_current, __path_events, __path_start, cancel, current, events, start,
};

use crate::http::app::AppState;
use crate::{error::Error, load::run::Plan};
use parking_lot::Mutex;
use run::Run;
use std::sync::Arc;

/// The current run of this instance, or the last one.
#[derive(Debug, Default)]
pub(in crate::http) struct Runs(Mutex<Option<Arc<Run>>>);

impl Runs {
    /// Starts a run, unless one is going on.
    fn start(&self, app: &AppState, plan: Plan, by: String) -> Result<Arc<Run>, Error> {
        let mut latest = self.0.lock();
        if let Some(going) = latest.as_ref().filter(|run| run.is_going()) {
            return Err(going.in_progress());
        }
        let run = Arc::new(Run::new(app, plan, by));
        tokio::spawn(Arc::clone(&run).drive(app.clone()));
        *latest = Some(Arc::clone(&run));
        Ok(run)
    }

    fn latest(&self) -> Option<Arc<Run>> {
        self.0.lock().clone()
    }

    fn find(&self, id: &str) -> Result<Arc<Run>, Error> {
        self.latest().filter(|run| run.id() == id).ok_or_else(|| Error::NoRun(id.to_owned()))
    }
}
