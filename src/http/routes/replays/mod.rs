//! Replays of the lessons' races: one at a time in an instance, watched by as many as want to.
//!
//! `routes.rs` has the routes for people, `actors.rs` those that instances use among themselves.

pub(super) mod actors;
pub(super) mod routes;

use crate::http::routes::prelude::*;
use crate::{
    replay::{End, Log, Pace, Place, Race, Steps, Terms},
    section::Point,
};
use futures::FutureExt;
use parking_lot::Mutex;
use std::{collections::HashMap, panic::AssertUnwindSafe};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The replay that goes on, or the last one; and the actors that play here for others.
#[derive(Default)]
pub(in crate::http) struct Replays {
    latest: Mutex<Option<Arc<Going>>>,
    actors: Mutex<HashMap<Uuid, watch::Sender<Vec<Point>>>>,
}

/// A replay.
struct Going {
    id: Uuid,
    lesson: &'static str,
    cured: bool,
    pace: Pace,
    steps: Steps,
    log: Arc<Log>,
    cancel: CancellationToken,
}

impl Replays {
    /// Starts a replay, unless one is going on.
    fn start(
        &self,
        app: &AppState,
        (lesson, race): (&'static str, &'static Race),
        cured: bool,
        pace: Pace,
    ) -> Result<Arc<Going>, Error> {
        let mut latest = self.latest.lock();
        if let Some(going) = latest.as_ref().filter(|going| going.log.end().is_none()) {
            return Err(Error::ReplayInProgress(going.lesson));
        }
        let (steps, log, cancel) = (Steps::default(), Arc::default(), app.stopping.child_token());
        let going = Arc::new(Going {
            id: Uuid::new_v4(),
            lesson,
            cured,
            pace,
            steps,
            log,
            cancel,
        });
        *latest = Some(Arc::clone(&going));
        let terms = Terms {
            places: places(app),
            pace,
            steps: going.steps.clone(),
        };
        let (ctx, script, playing) = (app.ctx.clone(), race.script(cured), Arc::clone(&going));
        app.ctx.tasks.spawn(async move {
            let played = AssertUnwindSafe(script.play(
                &ctx,
                terms,
                Arc::clone(&playing.log),
                &playing.cancel,
            ));
            if played.catch_unwind().await.is_err() {
                playing
                    .log
                    .close(End::Failed("a bug: the replay panicked".to_owned()));
            }
        });
        Ok(going)
    }

    /// The lesson of the replay that is going on.
    pub(in crate::http) fn playing(&self) -> Option<String> {
        self.going().map(|going| going.lesson.to_owned())
    }

    fn going(&self) -> Option<Arc<Going>> {
        self.latest
            .lock()
            .clone()
            .filter(|going| going.log.end().is_none())
    }

    fn find(&self, id: &str) -> Result<Arc<Going>, Error> {
        let latest = self.latest.lock().clone();
        latest
            .filter(|going| going.id.to_string() == id)
            .ok_or_else(|| Error::NoReplay(id.to_owned()))
    }
}

/// Where the actors play: on the instances of the cluster, each asked over HTTP with the admin token of this one; where there
/// is no cluster, here.
fn places(app: &AppState) -> Vec<Place> {
    let config = &app.ctx.config;
    let there = |url: &String| Place::There {
        url: url.clone(),
        token: config.admin_token(),
    };
    match config.cluster.instances.is_empty() {
        true => vec![Place::Here(app.ctx.clone())],
        false => config.cluster.instances.iter().map(there).collect(),
    }
}

/// Replays are for labs.
fn enabled(app: &AppState) -> Result<(), Error> {
    app.ctx
        .config
        .replays
        .enabled
        .then_some(())
        .ok_or(Error::NoReplays)
}
