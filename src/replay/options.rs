//! How a replay is played: its pace, where its actors run, and who lets it go on.
//!
//! Next: `play.rs`.

use super::actor::ActorHost;
use crate::{error::Error, section::Point};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{
        Mutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    time::timeout,
};

/// Limit of one wait for an actor, a lease or a queue, and the wait of an actor for a lock; a longer wait fails the replay.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest that a person may think about one step.
const PERSON_TIMEOUT: Duration = Duration::from_secs(300);

/// How fast a replay goes, and who lets it go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Slowly enough to follow, with the course's leases.
    #[default]
    Slow,
    /// At once. Leases and sessions are ended by the replay, and a dead holder only stands still. For tests and a quick
    /// verdict.
    Fast,
    /// At once. Leases and sessions end by their servers' clocks, and a dying process is killed (`kill -9`) if there is
    /// a lab.
    Clock,
    /// A person asks for each step.
    Step,
    /// The steps are not played. Each actor stops wherever another could come between, and a person decides who goes
    /// on: a schedule. Leases end, and the dying actor dies, when the person asks for it.
    Scheduler,
    /// The steps are not played. A stops once for a given time, and B starts a given time after A. Leases end by their
    /// servers' clocks ([`Timing`]).
    Timed,
}

impl Pace {
    /// Whether the replay ends leases and sessions itself, so that the clock decides nothing.
    pub(super) fn forces_timeouts(self) -> bool {
        matches!(self, Self::Fast | Self::Step | Self::Scheduler)
    }

    pub fn waits_for_people(self) -> bool {
        matches!(self, Self::Step | Self::Scheduler)
    }

    /// The first value if leases end by the clock, the second if the replay ends them.
    pub(super) fn pick<T>(self, [by_clock, forced]: [T; 2]) -> T {
        if self.forces_timeouts() { forced } else { by_clock }
    }
}

/// What a person asks to happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
pub enum NextMove {
    /// The next step of the race.
    #[serde(skip)]
    Step,
    A,
    B,
    C,
    /// Ends all leases.
    #[serde(rename = "clock")]
    Clock,
    /// The dying actor dies.
    #[serde(rename = "death")]
    Death,
    /// The Sentinel promotes the replica of the main Redis.
    #[serde(rename = "failover")]
    FailOver,
}

/// Where A stops at the pace [`Pace::Timed`].
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

/// The times of the pace [`Pace::Timed`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Where A stops.
    pub at: StallPoint,
    /// How long A stops.
    pub pause: Duration,
    /// The lease of both actors, in milliseconds.
    pub lease_ms: u64,
    /// How long after A B starts.
    pub after: Duration,
}

/// A queue of a person's requests to go on, at the paces [`Pace::Step`] and [`Pace::Scheduler`]. Clones share it.
#[derive(Debug, Clone)]
pub struct MoveRequests {
    sender: UnboundedSender<NextMove>,
    receiver: Arc<Mutex<UnboundedReceiver<NextMove>>>,
}

impl Default for MoveRequests {
    fn default() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver: Arc::new(Mutex::new(receiver)) }
    }
}

impl MoveRequests {
    pub fn request_move(&self, next: NextMove) {
        self.sender.send(next).ok();
    }

    /// Takes the first request of the person, waiting for it. Fails after [`PERSON_TIMEOUT`]. Dropping it loses none.
    pub(super) async fn wait_for_next(&self) -> Result<NextMove, Error> {
        let next = timeout(PERSON_TIMEOUT, async { self.receiver.lock().await.recv().await }).await;
        let late = || Error::replay(format!("nobody asked for the next step within {} s", PERSON_TIMEOUT.as_secs()));
        next.ok().flatten().ok_or_else(late)
    }
}

/// How one replay is played.
#[derive(Debug)]
pub struct PlayOptions {
    /// The instances on which actors run, in the order of the cluster.
    pub hosts: Vec<ActorHost>,
    pub pace: Pace,
    pub moves: MoveRequests,
    pub timing: Timing,
}
