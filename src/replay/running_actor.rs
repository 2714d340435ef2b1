//! An actor of a replay, as its director sees it: where it has been, where it stops, and how it has ended.
//!
//! Next: `play.rs`.

use super::{
    act::Act,
    actor::{ActorEvent, ActorHost, ActorSpec},
    observer::{EXIT_POINTS, Observer},
    options::STEP_TIMEOUT,
};
use crate::{error::Error, section::Point};
use std::{fmt::Display, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// One side of a race that runs.
pub(super) struct RunningActor {
    letter: char,
    stops: watch::Sender<Vec<Point>>,
    progress: watch::Receiver<ActorProgress>,
    /// How often it was let go on by whoever decides the order.
    releases: usize,
    /// Nobody hears of it again, though it may stand somewhere for good.
    is_frozen: bool,
    _follow: AbortOnDropHandle<()>,
}

/// How far a side has come.
#[derive(Debug, Clone, Default)]
struct ActorProgress {
    /// The points that it progress by.
    passed: Vec<Point>,
    /// Those of them at which it stood still.
    stopped_at: Vec<Point>,
    /// What it progress to at its end.
    end: Option<ActorEvent>,
}

impl RunningActor {
    /// Starts an actor and follows it: each of its events goes to the observer.
    ///
    /// With `restop`, it stops at those points again as soon as it has stopped at one of `spec.stops`.
    pub(super) async fn start(
        host: &ActorHost,
        letter: char,
        act: Act,
        spec: ActorSpec,
        restop: Option<&'static [Point]>,
        observer: Arc<Observer>,
    ) -> Result<Self, Error> {
        observer.actor_starting(letter);
        let mut actor = host.start(act, spec).await?;
        let (sender, progress) = watch::channel(ActorProgress::default());
        let stops = actor.stops();
        let current_stops = stops.clone();
        let follow = tokio::spawn(async move {
            while let Some(event) = actor.next().await {
                observer.record_event(letter, act.name(), act.sells(), &event);
                let mut stopped_at = None;
                sender.send_modify(|progress| match event {
                    ActorEvent::Start { .. } | ActorEvent::Sent { .. } => {}
                    ActorEvent::Point { point, .. } => {
                        progress.passed.push(point);
                        if current_stops.borrow().contains(&point) {
                            progress.stopped_at.push(point);
                            stopped_at = Some(point);
                        }
                    }
                    end => progress.end = Some(end),
                });
                if let (Some(point), Some(stops)) = (stopped_at, restop) {
                    // `advance` has left out the point that it stood at, so that it could leave: from now on it counts again.
                    current_stops.send_replace(stops.to_vec());
                    observer.record_stop(letter, point);
                }
            }
        });
        Ok(Self {
            letter,
            stops,
            progress,
            releases: 0,
            is_frozen: false,
            _follow: AbortOnDropHandle::new(follow),
        })
    }

    /// Lets it run; it will stand at each of these points.
    pub(super) fn set_stops(&self, points: &[Point]) {
        self.stops.send_replace(points.to_vec());
    }

    /// Lets it go on so long after it has come to this point.
    pub(super) fn stall(&self, at: Point, pause: Duration) -> impl Future<Output = ()> + use<> {
        let (mut progress, stops) = (self.progress.clone(), self.stops.clone());
        async move {
            let stands = |progress: &ActorProgress| {
                progress.stopped_at.contains(&at) || progress.end.is_some()
            };
            drop(progress.wait_for(stands).await);
            sleep(pause).await;
            stops.send_replace(Vec::new());
        }
    }

    /// Whether it stands somewhere, and was not let go on yet.
    pub(super) fn is_stopped(&self) -> bool {
        let progress = self.progress.borrow();
        !self.is_frozen && progress.end.is_none() && progress.stopped_at.len() > self.releases
    }

    /// Lets it go on from where it stands, if it does, to the next of these points.
    pub(super) fn advance(&mut self, stops: &[Point]) {
        if !self.is_stopped() {
            return;
        }
        let stopped_at = self.progress.borrow().stopped_at.clone();
        self.releases = stopped_at.len();
        let others = stops.iter().filter(|stop| Some(*stop) != stopped_at.last());
        self.set_stops(&others.copied().collect::<Vec<_>>());
    }

    /// Its client hangs up: what is left are its stops, at which what it has begun besides still stands.
    pub(super) fn into_stops(self) -> watch::Sender<Vec<Point>> {
        self.stops
    }

    /// Leaves it where it is for good.
    pub(super) fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// Waits for its end, whoever takes it there. One that is frozen has none.
    pub(super) async fn wait_until_ended(&self) {
        if !self.is_frozen {
            // An error: the task that follows it is gone, and so is the actor.
            let mut progress = self.progress.clone();
            drop(progress.wait_for(|progress| progress.end.is_some()).await);
        }
    }

    /// Waits until it has come so far.
    async fn wait_for(
        &mut self,
        what: impl Display,
        so_far: impl FnMut(&ActorProgress) -> bool,
    ) -> Result<ActorProgress, Error> {
        let letter = self.letter;
        let progress = timeout(STEP_TIMEOUT, self.progress.wait_for(so_far)).await;
        let progress =
            progress.map_err(|_| Error::replay(format!("{letter} does not come to {what}")))?;
        Ok(progress.map_err(Error::replay)?.clone())
    }

    /// Waits until it stands at each of these points.
    pub(super) async fn wait_until_stopped_at(&mut self, points: &[Point]) -> Result<(), Error> {
        let stands = |progress: &ActorProgress| {
            points
                .iter()
                .all(|point| progress.stopped_at.contains(point))
        };
        let so_far = |progress: &ActorProgress| stands(progress) || progress.end.is_some();
        let progress = self.wait_for(format!("{points:?}"), so_far).await?;
        if stands(&progress) {
            return Ok(());
        }
        Err(Error::replay(format!(
            "{} has not come to {points:?}, but to its end: {:?}",
            self.letter, progress.end
        )))
    }

    /// Waits until it has come by `point` so often, whether it stood there or not.
    pub(super) async fn wait_until_passed(
        &mut self,
        point: Point,
        times: usize,
    ) -> Result<(), Error> {
        let so_far = |progress: &ActorProgress| {
            progress.passed.iter().filter(|by| **by == point).count() >= times
        };
        self.wait_for(point, so_far).await.map(drop)
    }

    /// Lets it run to its end: what it progress to. It is seen to leave before another can get in after it.
    pub(super) async fn finish(mut self) -> Result<ActorEvent, Error> {
        let mut leaving = EXIT_POINTS.to_vec();
        loop {
            self.set_stops(&leaving);
            let leaves = |progress: &ActorProgress| {
                progress
                    .stopped_at
                    .iter()
                    .find(|at| leaving.contains(at))
                    .copied()
            };
            let so_far =
                |progress: &ActorProgress| leaves(progress).is_some() || progress.end.is_some();
            let progress = self.wait_for("its end", so_far).await;
            match progress.ok().and_then(|progress| leaves(&progress)) {
                Some(point) => leaving.retain(|leaves| *leaves != point),
                None => break,
            }
        }
        self.set_stops(&[]);
        let progress = self
            .wait_for("its end", |progress| progress.end.is_some())
            .await?;
        progress
            .end
            .ok_or_else(|| Error::replay(format!("{} is gone", self.letter)))
    }
}
