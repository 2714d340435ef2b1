//! Replays in progress. An instance plays one at a time, or a race beside its cure, and besides a few whose schedule a
//! person decides.
//!
//! `routes.rs` has the routes for people, `actors.rs` those between instances.

pub(super) mod actors;
pub(super) mod routes;

use crate::http::routes::prelude::*;
use crate::{
    config::Config,
    http::{
        extract::Admin,
        neighbours::{self, RemoteReplay},
    },
    replay::{ActorHost, Log, Pace, PlayOptions, Race, ReplayEnd, StepRequests, Timing},
    section::Point,
};
use futures::FutureExt;
use parking_lot::Mutex;
use std::{collections::HashMap, panic::AssertUnwindSafe};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const MAX_SCHEDULED: usize = 8;
/// The schedules, and a race with its cure.
const MAX_REMEMBERED: usize = MAX_SCHEDULED + 2;

/// Running replays and the latest ended ones, and the actors that play here for other instances.
#[derive(Default)]
pub(in crate::http) struct Replays {
    latest: Mutex<Vec<Arc<ActiveReplay>>>,
    actors: Mutex<HashMap<Uuid, watch::Sender<Vec<Point>>>>,
}

/// Whether the replay has started.
type Started = oneshot::Receiver<Result<(), Error>>;

struct ActiveReplay {
    id: Uuid,
    lesson: &'static str,
    cured: bool,
    pace: Pace,
    is_exclusive: bool,
    steps: StepRequests,
    log: Arc<Log>,
    cancel: CancellationToken,
}

impl Replays {
    /// Starts a replay, unless one that is running excludes it. An exclusive replay runs alone; any other may run
    /// beside its cure, and beside schedules. Other instances are asked after that: the receiver says whether one of
    /// them runs a replay that excludes it.
    fn start(
        &self,
        app: &AppState,
        (lesson, race): (&'static str, &'static Race),
        cured: bool,
        pace: Pace,
        timing: Timing,
    ) -> Result<(Arc<ActiveReplay>, Started), Error> {
        let mut latest = self.latest.lock();
        let is_exclusive = race.is_exclusive(pace, &app.ctx.config);
        let can_run_beside = |other: &ActiveReplay| match (pace, other.pace) {
            _ if is_exclusive || other.is_exclusive => false,
            (Pace::Scheduler, _) | (_, Pace::Scheduler) => true,
            (Pace::Step, _) | (_, Pace::Step) => false,
            _ => other.lesson == lesson && other.cured != cured,
        };
        let running: Vec<_> = latest.iter().filter(|replay| replay.is_running()).collect();
        if let Some(other) = running.iter().find(|other| !can_run_beside(other)) {
            return Err(Error::ReplayInProgress(other.lesson));
        }
        let scheduled = running
            .iter()
            .filter(|replay| replay.pace == Pace::Scheduler);
        if pace == Pace::Scheduler && scheduled.count() >= MAX_SCHEDULED {
            return Err(Error::Overloaded);
        }
        let (steps, log, cancel) = (
            StepRequests::default(),
            Arc::default(),
            app.stopping.child_token(),
        );
        let replay = Arc::new(ActiveReplay {
            id: Uuid::new_v4(),
            lesson,
            cured,
            pace,
            is_exclusive,
            steps,
            log,
            cancel,
        });
        while latest.len() >= MAX_REMEMBERED
            && let Some(over) = latest.iter().position(|replay| !replay.is_running())
        {
            latest.remove(over);
        }
        latest.push(Arc::clone(&replay));
        let options = PlayOptions {
            hosts: actor_hosts(app),
            pace,
            steps: replay.steps.clone(),
            timing,
        };
        let (ctx, script, playing) = (app.ctx.clone(), race.script(cured), Arc::clone(&replay));
        let (sender, started) = oneshot::channel();
        app.ctx.tasks.spawn(async move {
            // Both of two replays that start at the same time see each other here, so at most one goes on.
            if let Some(other) = playing.blocking_lesson(&ctx.config).await {
                let why = format!("the replay of {other} goes on in another instance");
                playing.log.close(ReplayEnd::Failed(why));
                drop(sender.send(Err(Error::ReplayInProgress(other))));
                return;
            }
            drop(sender.send(Ok(())));
            let played = AssertUnwindSafe(script.play(
                &ctx,
                options,
                Arc::clone(&playing.log),
                &playing.cancel,
            ));
            if played.catch_unwind().await.is_err() {
                playing
                    .log
                    .close(ReplayEnd::Failed("a bug: the replay panicked".to_owned()));
            }
        });
        Ok((replay, started))
    }

    pub(in crate::http) fn playing(&self) -> Vec<RemoteReplay> {
        let played = |replay: &Arc<ActiveReplay>| RemoteReplay {
            id: replay.id.to_string(),
            lesson: replay.lesson.to_owned(),
            pace: replay.pace,
        };
        self.running().iter().map(played).collect()
    }

    fn running(&self) -> Vec<Arc<ActiveReplay>> {
        let latest = self.latest.lock();
        latest
            .iter()
            .filter(|replay| replay.is_running())
            .cloned()
            .collect()
    }

    fn find(&self, id: &str) -> Result<Arc<ActiveReplay>, Error> {
        let latest = self.latest.lock();
        let found = latest.iter().find(|replay| replay.id.to_string() == id);
        found.cloned().ok_or_else(|| Error::NoReplay(id.to_owned()))
    }
}

impl ActiveReplay {
    fn is_running(&self) -> bool {
        self.log.end().is_none()
    }

    /// The lesson of a replay in another instance that excludes this one: its director would undo the faults that this
    /// one needs.
    async fn blocking_lesson(&self, config: &Config) -> Option<&'static str> {
        let id = self.id.to_string();
        let playing = neighbours::playing(&config.cluster.instances).await;
        let mut others = playing.iter().filter(|played| played.id != id);
        others.find_map(|played| played.blocking_lesson(self.is_exclusive, config))
    }
}

/// An exclusive replay needs the admin token.
fn check_permission(is_exclusive: bool, admin: Result<Admin, Error>) -> Result<(), Error> {
    if is_exclusive {
        admin.map(drop)
    } else {
        Ok(())
    }
}

/// The instances of the cluster, or this one if there is no cluster.
fn actor_hosts(app: &AppState) -> Vec<ActorHost> {
    let config = &app.ctx.config;
    let there = |url: &String| ActorHost::Remote {
        url: url.clone(),
        token: config.admin_token(),
    };
    match config.cluster.instances.is_empty() {
        true => vec![ActorHost::Local(app.ctx.clone())],
        false => config.cluster.instances.iter().map(there).collect(),
    }
}

pub(super) fn check_enabled(app: &AppState) -> Result<(), Error> {
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
    use crate::replay::NextMove;

    /// Its next step is a fail-over.
    #[tokio::test]
    async fn only_an_administrator_steps_an_exclusive_replay() {
        for is_exclusive in [true, false] {
            let (replays, steps) = (Replays::default(), StepRequests::default());
            let id = Uuid::new_v4();
            replays.latest.lock().push(Arc::new(ActiveReplay {
                id,
                lesson: "2.8",
                cured: false,
                pace: Pace::Scheduler,
                is_exclusive,
                steps: steps.clone(),
                log: Arc::default(),
                cancel: CancellationToken::new(),
            }));
            let replays = Arc::new(replays);
            let next = async |admin| {
                let actor = Query(routes::NextQuery {
                    actor: NextMove::FailOver,
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
            assert_eq!(stranger.is_err(), is_exclusive, "{stranger:?}");
            assert!(next(Ok(Admin)).await.is_ok());
        }
    }
}
