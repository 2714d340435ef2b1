//! What a race is written in: its sides, where each of them stands, and the end of a lease.
//!
//! 1. [`Play::side`] is one side of the race. [`Side::to`] lets it run until it stands at a point; [`Side::heads_for`] does
//!    not wait for it; [`Side::ends`] lets it run to its end.
//! 2. [`Play::step`] says what comes now, in both languages, and keeps the pace: slow, at a hand's command, or at once.
//! 3. [`Play::lease_ends`] waits until nobody has the lock any more, or another has it. At a slow pace the lease is the
//!    course's, and its time passes. Else it is long, so that the order is never left to the clock, and is ended here.
//!
//! Next: `races/`, one race to a file.

use super::{
    actor::{Line, Part},
    acts,
    event::{Log, ReplayEvent},
    faults::Faults,
    goods,
    place::Place,
    seen::Sights,
    stage::{self, Stage},
};
use crate::{ctx::Ctx, error::Error, section::Point};
use std::{fmt::Display, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// What must come comes within this, or the replay has failed.
const LONG: Duration = Duration::from_secs(20);
/// At a slow pace, the time between two steps.
const BEAT: Duration = Duration::from_millis(700);
/// At a slow pace, how long an actor stays at each point of its work.
const LINGER_MS: u64 = 400;
/// A person who steps through a replay may think so long about one step.
const THOUGHT: Duration = Duration::from_secs(300);
/// A lease that does not end before it is ended.
const LONG_LEASE_MS: u64 = 600_000;

/// How fast a replay goes.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// So that people can follow, with the course's leases.
    #[default]
    Slow,
    /// At once: for tests, and for a verdict.
    Fast,
    /// Each step when it is asked for.
    Step,
}

/// Lets a replay at the pace [`Pace::Step`] go on by one step.
#[derive(Debug, Clone)]
pub struct Steps(Arc<Semaphore>);

impl Default for Steps {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Steps {
    /// The next step.
    pub fn next(&self) {
        self.0.add_permits(1);
    }
}

/// A replay that goes on.
pub(super) struct Play {
    pub(super) ctx: Ctx,
    pub(super) places: Vec<Place>,
    pub(super) pace: Pace,
    /// Whether it is played on its cure.
    pub(super) cured: bool,
    pub(super) stock_id: i64,
    pub(super) sights: Sights,
    pub(super) stage: Arc<Stage>,
    pub(super) steps: Steps,
    /// What the lesson notes of what it saw.
    pub(super) saw: String,
    pub(super) faults: Faults,
}

/// One side of a race.
pub(super) struct Side {
    pub(super) letter: char,
    stops: watch::Sender<Vec<Point>>,
    standing: watch::Receiver<Vec<Point>>,
    passed: watch::Receiver<Vec<Point>>,
    outcome: watch::Receiver<Option<Line>>,
    _follow: AbortOnDropHandle<()>,
}

impl Play {
    /// Says what comes now, and keeps the pace.
    pub(super) async fn step(&self, zh: impl Display, en: impl Display) -> Result<(), Error> {
        let words = serde_json::json!({ "zh": zh.to_string(), "en": en.to_string() });
        let step = ReplayEvent {
            actor: "step".into(),
            event: "step".into(),
            value: Some(words),
            ..Default::default()
        };
        self.log().add(step);
        match self.pace {
            Pace::Fast => {}
            Pace::Slow => sleep(BEAT).await,
            Pace::Step => {
                let asked = timeout(THOUGHT, self.steps.0.acquire()).await;
                asked
                    .map_err(|_| gone_wrong("nobody asked for the next step"))?
                    .map_err(gone_wrong)?
                    .forget();
            }
        }
        Ok(())
    }

    /// What is seen of the replay.
    pub(super) fn log(&self) -> &Log {
        &self.stage.log
    }

    /// A lease of so many milliseconds at a slow pace; else one that lasts until it is ended.
    pub(super) fn lease(&self, millis: u64) -> Option<u64> {
        Some(if self.pace == Pace::Slow {
            millis
        } else {
            LONG_LEASE_MS
        })
    }

    /// A side that does `act` on the instance of this number (0 is the first), and stands at `point`.
    pub(super) async fn side_at(
        &self,
        point: Point,
        letter: char,
        instance: usize,
        act: &str,
        lease_ms: Option<u64>,
    ) -> Result<Side, Error> {
        let mut side = self.side(&[point], letter, instance, act, lease_ms).await?;
        side.at(point).await?;
        Ok(side)
    }

    /// A side that runs, and will stand at each of these points.
    pub(super) async fn side(
        &self,
        points: &[Point],
        letter: char,
        instance: usize,
        act: &str,
        lease_ms: Option<u64>,
    ) -> Result<Side, Error> {
        self.side_that_waits(LONG, points, letter, instance, act, lease_ms)
            .await
    }

    /// As [`side`](Self::side), but one that waits no longer than this.
    pub(super) async fn side_that_waits(
        &self,
        wait: Duration,
        points: &[Point],
        letter: char,
        instance: usize,
        act: &str,
        lease_ms: Option<u64>,
    ) -> Result<Side, Error> {
        let stops = points.to_vec();
        let wait_ms = wait.as_millis() as u64;
        let linger_ms = if self.pace == Pace::Slow {
            LINGER_MS
        } else {
            0
        };
        let part = Part {
            act: act.to_owned(),
            stock_id: self.stock_id,
            lease_ms,
            wait_ms,
            linger_ms,
            stops,
        };
        let place = &self.places[instance % self.places.len()];
        let sells = acts::find(act).is_some_and(|act| act.store.is_some() || goods::is_order(&act));
        let mut actor = place.start(part).await?;
        let (arrived, standing) = watch::channel(Vec::new());
        let (came_by, passed) = watch::channel(Vec::new());
        let (ended, outcome) = watch::channel(None);
        let (stage, stops) = (Arc::clone(&self.stage), actor.stops());
        let standing_at = stops.clone();
        let act = act.to_owned();
        let follow = tokio::spawn(async move {
            while let Some(line) = actor.next().await {
                stage.saw(letter, &act, sells, &line);
                match line {
                    Line::Point { point, .. } => {
                        if standing_at.borrow().contains(&point) {
                            arrived.send_modify(|standing| standing.push(point));
                        }
                        came_by.send_modify(|passed| passed.push(point));
                    }
                    end @ (Line::Done { .. } | Line::Failed { .. }) => {
                        drop(ended.send_replace(Some(end)))
                    }
                    _ => {}
                }
            }
        });
        Ok(Side {
            letter,
            stops,
            standing,
            passed,
            outcome,
            _follow: AbortOnDropHandle::new(follow),
        })
    }

    /// How often the lock is held by its owner, as its server counts; 0: nobody has it.
    pub(super) async fn holds(&self) -> Result<i64, Error> {
        self.stage.look(&self.sights).await?;
        Ok(self
            .sights
            .read()
            .await?
            .locks
            .first()
            .map_or(0, |held| held.count.unwrap_or(1)))
    }

    /// What is left of the lock's lease, in milliseconds; none where nobody has it.
    pub(super) async fn lease_left(&self) -> Result<Option<i64>, Error> {
        self.stage.look(&self.sights).await?;
        Ok(self
            .sights
            .read()
            .await?
            .locks
            .first()
            .and_then(|held| held.pttl))
    }

    /// Waits until so many are in the lock's queue besides its holder, as its server has it.
    pub(super) async fn queued(&self, waiting: usize) -> Result<(), Error> {
        let there = async {
            while self
                .sights
                .read()
                .await?
                .locks
                .first()
                .map_or(0, |held| held.queue.len())
                <= waiting
            {
                sleep(Duration::from_millis(5)).await;
            }
            self.stage.look(&self.sights).await
        };
        timeout(LONG, there)
            .await
            .map_err(|_| gone_wrong(format!("no {waiting} are in the queue")))?
    }

    /// It is dead from now on: it stands where it is, and nobody hears of it again.
    pub(super) fn dies(&self, side: &Side, act: &str) {
        let dead = Line::Failed {
            kind: "dead".to_owned(),
            detail: "dead".to_owned(),
        };
        self.stage.saw(side.letter, act, false, &dead);
    }

    /// A side that waits for what another has: it has begun to.
    pub(super) async fn waiting(
        &self,
        letter: char,
        instance: usize,
        act: &str,
    ) -> Result<Side, Error> {
        let mut side = self
            .side_at(Point::Waits, letter, instance, act, None)
            .await?;
        side.heads_for_any(&[]);
        Ok(side)
    }

    /// Waits until the lock's lease has ended: nobody has it, or another than before.
    pub(super) async fn lease_ends(&self) -> Result<(), Error> {
        let before = self.stage.holder();
        if self.pace != Pace::Slow {
            self.sights.end_leases().await?;
        }
        let ended = async {
            loop {
                if self.sights.read().await?.locks.is_empty() || self.stage.holder() != before {
                    return Ok(());
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, ended)
            .await
            .map_err(|_| gone_wrong("the lease does not end"))?
    }
}

impl Side {
    /// Lets it run until it stands at `point`.
    pub(super) async fn to(&mut self, point: Point) -> Result<(), Error> {
        self.heads_for(point);
        self.at(point).await
    }

    /// Lets it run; it will stand at `point`.
    pub(super) fn heads_for(&mut self, point: Point) {
        self.heads_for_any(&[point]);
    }

    /// Lets it run; it will stand at each of these points.
    pub(super) fn heads_for_any(&mut self, points: &[Point]) {
        self.stops.send_replace(points.to_vec());
    }

    /// Waits until it stands at `point`.
    pub(super) async fn at(&mut self, point: Point) -> Result<(), Error> {
        self.at_one_of(&[point]).await.map(drop)
    }

    /// Waits until it stands at one of these points: the one to which it came first.
    pub(super) async fn at_one_of(&mut self, points: &[Point]) -> Result<Point, Error> {
        let Self {
            letter,
            standing,
            outcome,
            ..
        } = self;
        let first = |standing: &Vec<Point>| standing.iter().find(|at| points.contains(at)).copied();
        let there = async {
            tokio::select! {
                biased;
                Ok(standing) = standing.wait_for(|standing| first(standing).is_some()) => {
                    first(&standing).ok_or_else(|| gone_wrong(format!("{letter} stands nowhere")))
                }
                end = outcome.wait_for(Option::is_some) => {
                    let end = end.ok().and_then(|end| end.clone());
                    Err(gone_wrong(format!("{letter} has not come to {points:?}, but to its end: {end:?}")))
                }
            }
        };
        timeout(LONG, there)
            .await
            .map_err(|_| gone_wrong(format!("{letter} does not come to {points:?}")))?
    }

    /// Waits until it has come by `point` so often, whether it stood there or not.
    pub(super) async fn passes(&mut self, point: Point, times: usize) -> Result<(), Error> {
        let passed = self
            .passed
            .wait_for(|passed| passed.iter().filter(|by| **by == point).count() >= times);
        let passed = timeout(LONG, passed).await;
        passed
            .map_err(|_| gone_wrong(format!("{} does not come by {point}", self.letter)))?
            .map_err(gone_wrong)?;
        Ok(())
    }

    /// Lets it run to its end: what it came to. It is seen to leave before another can get in after it.
    pub(super) async fn ends(&mut self) -> Result<Line, Error> {
        let mut leaving = stage::LEAVING.to_vec();
        loop {
            self.heads_for_any(&leaving);
            let Self {
                standing, outcome, ..
            } = self;
            let left = async {
                tokio::select! {
                    biased;
                    Ok(standing) = standing.wait_for(|at| at.iter().any(|at| leaving.contains(at))) => {
                        standing.iter().find(|at| leaving.contains(at)).copied()
                    }
                    _ = outcome.wait_for(Option::is_some) => None,
                }
            };
            match timeout(LONG, left).await {
                Ok(Some(point)) => leaving.retain(|leaves| *leaves != point),
                _ => break,
            }
        }
        self.heads_for_any(&[]);
        let ended = timeout(LONG, self.outcome.wait_for(Option::is_some)).await;
        let ended =
            ended.map_err(|_| gone_wrong(format!("{} does not come to its end", self.letter)))?;
        let ended = ended.map_err(gone_wrong)?.clone();
        ended.ok_or_else(|| gone_wrong(format!("{} is gone", self.letter)))
    }
}

/// How often a side was tried anew.
pub(super) fn retries(end: &Line) -> u32 {
    if let Line::Done { retries, .. } = end {
        *retries
    } else {
        0
    }
}

/// The replay did not go as it must.
pub(super) fn gone_wrong(why: impl Display) -> Error {
    Error::Replay(why.to_string())
}
