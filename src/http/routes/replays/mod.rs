//! Replays of the lessons' races: one at a time in an instance, or a race beside its cure, and a few whose order somebody
//! decides; watched by as many as want to.
//!
//! `routes.rs` has the routes for people, `actors.rs` those that instances use among themselves.

pub(super) mod actors;
pub(super) mod routes;

use crate::http::routes::prelude::*;
use crate::{
    http::extract::Admin,
    replay::{self, End, Log, Pace, Place, Race, Steps, Terms, Timing},
    section::Point,
};
use futures::FutureExt;
use parking_lot::Mutex;
use std::{collections::HashMap, panic::AssertUnwindSafe};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// So many people decide the order of a race at once.
const MOST_ORDERS: usize = 8;
/// So many replays are remembered: those, and a race and its cure.
const REMEMBERED: usize = MOST_ORDERS + 2;

/// The replays that go on, or the last ones; and the actors that play here for others.
#[derive(Default)]
pub(in crate::http) struct Replays {
    latest: Mutex<Vec<Arc<Going>>>,
    actors: Mutex<HashMap<Uuid, watch::Sender<Vec<Point>>>>,
}

/// A replay.
struct Going {
    id: Uuid,
    lesson: &'static str,
    cured: bool,
    pace: Pace,
    needs_all: bool,
    steps: Steps,
    log: Arc<Log>,
    cancel: CancellationToken,
}

impl Replays {
    /// Starts a replay, unless another is going on. One that stops and breaks nothing may be played beside its cure, and beside those
    /// of which somebody decides the order.
    fn start(
        &self,
        app: &AppState,
        (lesson, race): (&'static str, &'static Race),
        cured: bool,
        pace: Pace,
        timing: Timing,
    ) -> Result<Arc<Going>, Error> {
        let mut latest = self.latest.lock();
        let needs_all = race.needs_all(pace);
        let goes_beside = |other: &Going| match (pace, other.pace) {
            _ if needs_all || other.needs_all => false,
            (Pace::Scheduler, _) | (_, Pace::Scheduler) => true,
            (Pace::Step, _) | (_, Pace::Step) => false,
            _ => other.lesson == lesson && other.cured != cured,
        };
        let going: Vec<_> = latest.iter().filter(|going| going.goes_on()).collect();
        if let Some(other) = going.iter().find(|other| !goes_beside(other)) {
            return Err(Error::ReplayInProgress(other.lesson));
        }
        let orders = going.iter().filter(|going| going.pace == Pace::Scheduler);
        if pace == Pace::Scheduler && orders.count() >= MOST_ORDERS {
            return Err(Error::Overloaded);
        }
        let (steps, log, cancel) = (Steps::default(), Arc::default(), app.stopping.child_token());
        let going = Arc::new(Going {
            id: Uuid::new_v4(),
            lesson,
            cured,
            pace,
            needs_all,
            steps,
            log,
            cancel,
        });
        while latest.len() >= REMEMBERED
            && let Some(over) = latest.iter().position(|going| !going.goes_on())
        {
            latest.remove(over);
        }
        latest.push(Arc::clone(&going));
        let terms = Terms {
            places: places(app),
            pace,
            steps: going.steps.clone(),
            timing,
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
        let going = self.going();
        going.first().map(|going| going.lesson.to_owned())
    }

    fn going(&self) -> Vec<Arc<Going>> {
        let latest = self.latest.lock();
        latest
            .iter()
            .filter(|going| going.goes_on())
            .cloned()
            .collect()
    }

    fn find(&self, id: &str) -> Result<Arc<Going>, Error> {
        let latest = self.latest.lock();
        let found = latest.iter().find(|going| going.id.to_string() == id);
        found.cloned().ok_or_else(|| Error::NoReplay(id.to_owned()))
    }
}

impl Going {
    fn goes_on(&self) -> bool {
        self.log.end().is_none()
    }
}

/// Refuses a replay that breaks servers to whoever is no administrator.
fn permitted(lesson: &str, admin: Result<Admin, Error>) -> Result<(), Error> {
    match replay::find(lesson) {
        Some((_, race)) if race.breaks_something() => admin.map(drop),
        _ => Ok(()),
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
pub(super) fn enabled(app: &AppState) -> Result<(), Error> {
    app.ctx
        .config
        .replays
        .enabled
        .then_some(())
        .ok_or(Error::NoReplays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_replay_that_breaks_servers_takes_an_administrator() {
        for (lesson, breaks) in [("2.10.4", true), ("2.3", false)] {
            let stranger = permitted(lesson, Err(Error::Unauthorized));
            assert_eq!(stranger.is_err(), breaks, "{lesson}");
            assert!(permitted(lesson, Ok(Admin)).is_ok(), "{lesson}");
        }
    }
}
