//! An actor as its director sees it: the points that it has passed, where it stops, and how it ended.
//!
//! Next: `actor.rs`, the job itself.

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

/// A started actor of a replay: its stops, and how far it has come. Dropping it ends the actor.
pub(super) struct RunningActor {
    letter: char,
    pub(super) stops: watch::Sender<Vec<Point>>,
    progress: watch::Receiver<ActorProgress>,
    /// The number of stops from which it was let go.
    releases: usize,
    /// Whether it counts as dead at its stop: then its end never comes.
    pub(super) is_frozen: bool,
    _follow: AbortOnDropHandle<()>,
}

/// How far an actor has come.
#[derive(Debug, Clone, Default)]
struct ActorProgress {
    passed: Vec<Point>,
    /// The passed points at which it stopped.
    stopped_at: Vec<Point>,
    end: Option<ActorEvent>,
}

impl RunningActor {
    /// Starts an actor, and reports its events to the observer. With `restop` it gets these stops anew at each of its stops, and
    /// the observer logs that it stands.
    pub(super) async fn start_and_follow(
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
                    ActorEvent::Start { .. } | ActorEvent::Sent { .. } | ActorEvent::Answered { .. } => {}
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
                    // `advance` had left out the point that it stood at.
                    current_stops.send_replace(stops.to_vec());
                    observer.record_stop(letter, point);
                }
            }
        });
        Ok(Self { letter, stops, progress, releases: 0, is_frozen: false, _follow: AbortOnDropHandle::new(follow) })
    }

    /// Replaces the stops. The actor goes on from its stop unless that is among them.
    pub(super) fn set_stops(&self, points: &[Point]) {
        self.stops.send_replace(points.to_vec());
    }

    /// Waits until the actor has stopped at `at` or ended, without a limit, then for `pause`, and clears its stops.
    pub(super) fn resume_after(&self, at: Point, pause: Duration) -> impl Future<Output = ()> + use<> {
        let (mut progress, stops) = (self.progress.clone(), self.stops.clone());
        async move {
            let stands = |progress: &ActorProgress| progress.stopped_at.contains(&at) || progress.end.is_some();
            drop(progress.wait_for(stands).await);
            sleep(pause).await;
            stops.send_replace(Vec::new());
        }
    }

    /// Whether the actor stands at a stop from which `advance` has not let it go; `false` for a frozen one.
    pub(super) fn is_stopped(&self) -> bool {
        let progress = self.progress.borrow();
        !self.is_frozen && progress.end.is_none() && progress.stopped_at.len() > self.releases
    }

    /// Lets the actor go on from its stop to the next of these stops. Does nothing if it stands at none.
    pub(super) fn advance(&mut self, stops: &[Point]) {
        if !self.is_stopped() {
            return;
        }
        let stopped_at = self.progress.borrow().stopped_at.clone();
        self.releases = stopped_at.len();
        let others = stops.iter().filter(|stop| Some(*stop) != stopped_at.last());
        self.set_stops(&others.copied().collect::<Vec<_>>());
    }

    /// Waits, without a limit, until the actor has ended or is gone. Returns at once for a frozen one.
    pub(super) async fn wait_until_ended(&self) {
        if !self.is_frozen {
            let mut progress = self.progress.clone();
            drop(progress.wait_for(|progress| progress.end.is_some()).await);
        }
    }

    /// Waits until `until` is true of the progress, and returns it. Fails after [`STEP_TIMEOUT`], or if the actor is gone.
    async fn wait_for(&mut self, what: impl Display, until: impl FnMut(&ActorProgress) -> bool) -> Result<ActorProgress, Error> {
        let letter = self.letter;
        let progress = timeout(STEP_TIMEOUT, self.progress.wait_for(until)).await;
        let progress = progress
            .map_err(|_| Error::replay(format!("{letter} did not come to {what} within {} s", STEP_TIMEOUT.as_secs())))?;
        Ok(progress.map_err(Error::replay)?.clone())
    }

    /// Waits until the actor has stopped at each of these points; an earlier stop counts too. Fails if it ends before.
    pub(super) async fn wait_until_stopped_at(&mut self, points: &[Point]) -> Result<(), Error> {
        let stands = |progress: &ActorProgress| points.iter().all(|point| progress.stopped_at.contains(point));
        let until = |progress: &ActorProgress| stands(progress) || progress.end.is_some();
        let progress = self.wait_for(format!("{points:?}"), until).await?;
        if stands(&progress) {
            return Ok(());
        }
        Err(Error::replay(format!("{} has not come to {points:?}, but to its end: {:?}", self.letter, progress.end)))
    }

    /// Waits until the actor has passed `point` this many times since its start, whether it stopped there or not.
    pub(super) async fn wait_until_passed(&mut self, point: Point, times: usize) -> Result<(), Error> {
        let until = |progress: &ActorProgress| progress.passed.iter().filter(|by| **by == point).count() >= times;
        self.wait_for(point, until).await.map(drop)
    }

    /// Runs the actor to its end, and returns its last event; fails if none comes. It stops at each exit point, so that it
    /// is seen to leave before another one enters.
    pub(super) async fn finish(mut self) -> Result<ActorEvent, Error> {
        let mut leaving = EXIT_POINTS.to_vec();
        loop {
            self.set_stops(&leaving);
            let leaves = |progress: &ActorProgress| progress.stopped_at.iter().find(|at| leaving.contains(at)).copied();
            let until = |progress: &ActorProgress| leaves(progress).is_some() || progress.end.is_some();
            let progress = self.wait_for("its end", until).await;
            match progress.ok().and_then(|progress| leaves(&progress)) {
                Some(point) => leaving.retain(|leaves| *leaves != point),
                None => break,
            }
        }
        self.set_stops(&[]);
        let progress = self.wait_for("its end", |progress| progress.end.is_some()).await?;
        progress.end.ok_or_else(|| Error::replay(format!("{} was ended before it could report its result", self.letter)))
    }
}
