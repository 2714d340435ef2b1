//! Replays of the lessons' races: one at a time in an instance, or a race beside its cure, and a few whose order somebody
//! decides; watched by as many as want to.
//!
//! `routes.rs` has the routes for people, `actors.rs` those that instances use among themselves.

pub(super) mod actors;
pub(super) mod routes;

use crate::http::routes::prelude::*;
use crate::{
    config::Config,
    http::{
        extract::Admin,
        neighbours::{self, Played},
    },
    replay::{End, Log, Pace, Place, Race, Steps, Terms, Timing},
    section::Point,
};
use futures::FutureExt;
use parking_lot::Mutex;
use std::{collections::HashMap, panic::AssertUnwindSafe};
use tokio::sync::{oneshot, watch};
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

/// Whether a replay begins.
type Begins = oneshot::Receiver<Result<(), Error>>;

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
    /// of which somebody decides the order. Then tells whether it begins: another instance may play what goes on beside nothing else.
    fn start(
        &self,
        app: &AppState,
        (lesson, race): (&'static str, &'static Race),
        cured: bool,
        pace: Pace,
        timing: Timing,
    ) -> Result<(Arc<Going>, Begins), Error> {
        let mut latest = self.latest.lock();
        let needs_all = race.needs_all(pace, &app.ctx.config);
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
        let (tells, begins) = oneshot::channel();
        app.ctx.tasks.spawn(async move {
            // The others see this one by now: of two that begin at once, none goes on beside the other.
            if let Some(other) = playing.in_the_way(&ctx.config).await {
                let why = format!("the replay of {other} goes on in another instance");
                playing.log.close(End::Failed(why));
                drop(tells.send(Err(Error::ReplayInProgress(other))));
                return;
            }
            drop(tells.send(Ok(())));
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
        Ok((going, begins))
    }

    /// The replays that go on.
    pub(in crate::http) fn playing(&self) -> Vec<Played> {
        let played = |going: &Arc<Going>| Played {
            id: going.id.to_string(),
            lesson: going.lesson.to_owned(),
            pace: going.pace,
        };
        self.going().iter().map(played).collect()
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

    /// The lesson of a replay in another instance beside which it cannot be played: of two directors over one lab, the one mends what
    /// the other needs broken.
    async fn in_the_way(&self, config: &Config) -> Option<&'static str> {
        let id = self.id.to_string();
        let playing = neighbours::playing(&config.cluster.instances).await;
        let mut others = playing.iter().filter(|played| played.id != id);
        others.find_map(|played| played.in_the_way(self.needs_all, config))
    }
}

/// Refuses a replay that breaks or stops something to whoever is no administrator.
fn permitted(needs_all: bool, admin: Result<Admin, Error>) -> Result<(), Error> {
    if needs_all { admin.map(drop) } else { Ok(()) }
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
    use crate::replay::Who;

    /// A fail-over is ordered by whoever lets it go on.
    #[tokio::test]
    async fn a_replay_that_breaks_servers_is_let_go_on_by_an_administrator_alone() {
        for needs_all in [true, false] {
            let (replays, steps) = (Replays::default(), Steps::default());
            let id = Uuid::new_v4();
            replays.latest.lock().push(Arc::new(Going {
                id,
                lesson: "2.8",
                cured: false,
                pace: Pace::Scheduler,
                needs_all,
                steps: steps.clone(),
                log: Arc::default(),
                cancel: CancellationToken::new(),
            }));
            let replays = Arc::new(replays);
            let next = async |admin| {
                let actor = Query(routes::Next {
                    actor: Who::FailOver,
                });
                routes::next(
                    admin,
                    Own(Arc::clone(&replays)),
                    Path(id.to_string()),
                    actor,
                )
                .await
            };
            let stranger = next(Err(Error::Unauthorized)).await;
            assert_eq!(stranger.is_err(), needs_all, "{stranger:?}");
            assert!(next(Ok(Admin)).await.is_ok());
        }
    }
}
