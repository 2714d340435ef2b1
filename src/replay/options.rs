//! How a replay is played: its pace, where its actors run, and who lets it go on.
//!
//! Next: `play.rs`.

use super::actor::ActorHost;
use crate::{error::Error, section::Point};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::timeout};

/// A step of a replay that takes longer fails it.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest that a person may think about one step.
const PERSON_TIMEOUT: Duration = Duration::from_secs(300);

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
    /// At once. What ends by itself in the lesson is ended by order: leases, sessions, and a holder that only stands still. For
    /// tests, and for a quick verdict.
    Fast,
    /// At once, but leases are the course's and end by their server's clock, sessions end for want of heartbeats, and who dies
    /// is killed (`kill -9`), where a lab takes orders.
    Clock,
    /// Each step when it is asked for.
    Step,
    /// No step of the race: each actor stands still wherever another could come between, until it is asked to go on, so that
    /// whoever asks decides the order. Leases end when the clock is asked to go on, and who dies in the race does so when asked.
    Scheduler,
    /// No step of the race: A stands still once, for so long, and B comes so much later; leases are so long, and end by their
    /// server's clock ([`Timing`]).
    Timed,
}

impl Pace {
    /// Whether leases and sessions are ended by order, so that no order is left to the clock.
    pub(super) fn forces_timeouts(self) -> bool {
        matches!(self, Self::Fast | Self::Step | Self::Scheduler)
    }

    /// Whether a person decides when it goes on.
    #[must_use]
    pub fn waits_for_people(self) -> bool {
        matches!(self, Self::Step | Self::Scheduler)
    }

    /// What holds where leases end by the clock, and what where they are ended by order.
    pub(super) fn pick<T>(self, [by_clock, forced]: [T; 2]) -> T {
        if self.forces_timeouts() {
            forced
        } else {
            by_clock
        }
    }
}

/// Who is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
pub enum NextMove {
    /// The race.
    #[serde(skip)]
    All,
    /// An actor.
    A,
    /// Another one.
    B,
    /// One more.
    C,
    /// The clock of the leases.
    #[serde(rename = "clock")]
    Clock,
    /// Death, which comes for the one who dies in the race.
    #[serde(rename = "death")]
    Death,
    /// The Sentinel, which promotes the replica of the main Redis.
    #[serde(rename = "failover")]
    FailOver,
}

/// Where A stands still at the pace [`Pace::Timed`].
#[derive(Debug, Clone, Copy, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StallPoint {
    /// Inside, before it reads.
    Locked,
    /// Between its read and its write.
    #[default]
    Read,
    /// Between its write and its unlock.
    Written,
}

impl From<StallPoint> for Point {
    fn from(stall: StallPoint) -> Self {
        match stall {
            StallPoint::Locked => Self::Locked,
            StallPoint::Read => Self::Read,
            StallPoint::Written => Self::Written,
        }
    }
}

/// What happens when, at the pace [`Pace::Timed`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Where A stands still.
    pub at: StallPoint,
    /// For how long.
    pub pause: Duration,
    /// The lease that both ask for, in milliseconds.
    pub lease_ms: u64,
    /// So long after A comes B.
    pub after: Duration,
}

/// Lets a replay at the pace [`Pace::Step`] or [`Pace::Scheduler`] go on.
#[derive(Debug, Clone)]
pub struct StepRequests(Arc<(Semaphore, Mutex<VecDeque<NextMove>>)>);

impl Default for StepRequests {
    fn default() -> Self {
        Self(Arc::new((Semaphore::new(0), Mutex::default())))
    }
}

impl StepRequests {
    /// Asks for the next step: of the race, or of one of those who play.
    pub fn request(&self, who: NextMove) {
        let (permits, moves) = &*self.0;
        moves.lock().push_back(who);
        permits.add_permits(1);
    }

    /// Waits until a step is asked for: whose.
    pub(super) async fn wait_for_next(&self) -> Result<NextMove, Error> {
        let (permits, moves) = &*self.0;
        let permit = timeout(PERSON_TIMEOUT, permits.acquire()).await;
        permit
            .map_err(|_| Error::replay("nobody asked for the next step"))?
            .map_err(Error::replay)?
            .forget();
        let next = moves.lock().pop_front();
        next.ok_or_else(|| Error::replay("nobody is to go on"))
    }
}

/// Where and how a replay is played.
#[derive(Debug)]
pub struct PlayOptions {
    /// The instances, in the order of the cluster.
    pub hosts: Vec<ActorHost>,
    /// How fast.
    pub pace: Pace,
    /// For [`Pace::Step`] and [`Pace::Scheduler`]: lets it go on.
    pub steps: StepRequests,
    /// For [`Pace::Timed`]: what happens when.
    pub timing: Timing,
}
