//! Named points in a lesson's code, where it can be observed and stopped: a race is replayed instead of hoped for.
//!
//! 1. A strategy reports where it is, and the value it has there: `job.reach(Point::Locked).await`,
//!    `job.reach_with(Point::Read, count).await`. Without a follower it continues at once.
//! 2. A follower ([`Job::with_follower`](super::Job::with_follower)), such as a replay, receives each point and names those at
//!    which the job stops; naming others lets it continue.
//! 3. The follower also receives each statement and command that the job sends to a server
//!    ([`Points::report_sent`], [`RedisTap`](super::RedisTap)).
//! 4. A test that needs a single stop asks for that one ([`Job::pause_at`](super::Job::pause_at)).
//!
//! No request can ask for a stop: stops are for replays and tests.

use serde::{Deserialize, Serialize};
use std::{fmt::Display, time::Duration};
use tokio::sync::{mpsc, watch};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

/// Declares the points, each with its name in events and between instances.
macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// A point in the code of a strategy, a seckill step, or a race.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Point {
            $($(#[$doc])* #[serde(rename = $name)] $point,)*
        }

        impl PartialSchema for Point {
            fn schema() -> RefOr<Schema> {
                let name = ObjectBuilder::new().schema_type(Type::String);
                name.enum_values(Some([$($name),*])).into()
            }
        }

        impl ToSchema for Point {}

        impl Point {
            /// Its name in events, and between instances.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// It waits for what another holds.
    Waits = "waits",
    /// A try was refused: another holds the lock, or a limit is reached.
    Refused = "refused",
    /// The server has given it the lock, and it does not know yet.
    Taken = "taken",
    /// It is inside the critical section.
    Locked = "locked",
    /// WATCH was answered.
    Watched = "watched",
    /// It has read what it decides by.
    Read = "read",
    /// It has looked whether the user has an order, or whose the lock is.
    Checked = "checked",
    /// It has compared the owner in the lock with its own, or is about to do so in a script.
    Compared = "compared",
    /// Its write was answered.
    Written = "written",
    /// Another was faster: its own write or transaction was refused.
    Conflict = "conflict",
    /// It is about to commit.
    Commit = "commit",
    /// Its transaction is committed.
    Committed = "committed",
    /// It is about to unlock.
    Unlock = "unlock",
    /// Something was unlocked.
    Unlocked = "unlocked",
    /// It has given the lock or permit back.
    Released = "released",
    /// Its timer is about to renew the lease.
    Renew = "renew",
    /// Its renewal was answered, or has failed.
    Renewed = "renewed",
    /// A message of the stream was delivered to it.
    Delivered = "delivered",
    /// The work under the lock is done.
    Worked = "worked",
    /// It is about to leave.
    Leaves = "leaves",
    /// It has left.
    Left = "left",
    /// A reader was refused the write lock.
    UpgradeRefused = "upgrade-refused",
    /// A writer has become a reader.
    Downgraded = "downgraded",
    /// A waiter was woken.
    Woken = "woken",
    /// A counter was set.
    Set = "set",
    /// A counter was incremented.
    Incr = "incr",
    /// It has counted to its end.
    Counted = "counted",
    /// The door of the latch is locked.
    Door = "door",
    /// It has gone out through the door of the latch.
    Out = "out",
    /// A rate limit lets it through.
    LetThrough = "let-through",
    /// A rate limit refuses it.
    Limited = "limited",
}

/// The points at which a job lingers, so that people can follow its work under the lock.
const LINGER_POINTS: [Point; 3] = [Point::Locked, Point::Read, Point::Written];

impl Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The follower of one job, if it has one. Without a follower, cloning this and passing points is free.
#[derive(Debug, Clone, Default)]
pub(crate) struct Points(pub(super) Option<Follower>);

/// The job's end of a follower: where it reports its events, and the points at which it must stop. A follower that no longer
/// listens stops nothing.
#[derive(Debug, Clone)]
pub(crate) struct Follower {
    pub(crate) events: mpsc::UnboundedSender<FollowerEvent>,
    /// Where the job stops, until this changes or its sender is dropped.
    pub(crate) stops: watch::Receiver<Vec<Point>>,
    /// How long the job stays at each of the [`LINGER_POINTS`].
    pub(crate) linger: Duration,
}

/// What a job reports to its follower: a point that it has reached, or a command to a server, or the answer to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowerEvent {
    /// The job has reached a point, at which it may have to stop.
    Point {
        point: Point,
        /// The value that it has there: a count that it has read, an owner that it has found.
        value: Option<String>,
    },
    /// The job sends this statement or command to a server. Further lines are the text of its script.
    Sent(String),
    /// The server has answered this statement or command.
    Answered { line: String, answer: String },
}

/// A test's hold on a job that stops at one point. Dropping it lets the job go on.
#[derive(Debug)]
#[must_use = "the job goes on as soon as its pause is dropped"]
pub struct Pause {
    events: mpsc::UnboundedReceiver<FollowerEvent>,
    stops: watch::Sender<Vec<Point>>,
}

impl Points {
    /// The points of a job that stops at `point`, and its pause.
    pub(crate) fn paused_at(point: Point) -> (Self, Pause) {
        let ((sender, events), (stops, stopping)) = (mpsc::unbounded_channel(), watch::channel(vec![point]));
        let follower = Follower { events: sender, stops: stopping, linger: Duration::ZERO };
        (Self(Some(follower)), Pause { events, stops })
    }

    /// Reports a point without a value, and waits while it is among the stops.
    pub(crate) async fn reach(&self, point: Point) {
        self.pass(point, None).await;
    }

    /// Reports a point with the value that the job has there, and waits while it is among the stops.
    pub(crate) async fn reach_with(&self, point: Point, value: impl Display) {
        let value = self.0.is_some().then(|| value.to_string());
        self.pass(point, value).await;
    }

    /// Reports what goes to a server. `what` is only called if somebody follows.
    pub(crate) fn report_sent<T: Display>(&self, what: impl FnOnce() -> T) {
        if let Some(follower) = &self.0 {
            // The follower may be gone.
            let _gone = follower.events.send(FollowerEvent::Sent(what().to_string()));
        }
    }

    /// Reports the answer to `line`, which was [sent](Self::report_sent).
    pub(crate) fn report_answer(&self, line: impl Display, answer: impl Display) {
        if let Some(follower) = &self.0 {
            let (line, answer) = (line.to_string(), answer.to_string());
            // The follower may be gone.
            let _gone = (follower.events).send(FollowerEvent::Answered { line, answer });
        }
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.0.is_some()
    }

    /// Reports the point, waits while it is among the stops, then lingers if it is one of [`LINGER_POINTS`]. Without a
    /// follower it does nothing.
    async fn pass(&self, point: Point, value: Option<String>) {
        let Some(follower) = &self.0 else {
            return;
        };
        let event = FollowerEvent::Point { point, value };
        if follower.events.send(event).is_ok() {
            let mut stops = follower.stops.clone();
            drop(stops.wait_for(|stops| !stops.contains(&point)).await);
            if LINGER_POINTS.contains(&point) {
                tokio::time::sleep(follower.linger).await;
            }
        }
    }
}

impl Pause {
    /// Waits until the job is at its stop, or gone.
    pub async fn wait_until_reached(&mut self) {
        while let Some(event) = self.events.recv().await {
            if matches!(event, FollowerEvent::Point { point, .. } if self.stops.borrow().contains(&point)) {
                return;
            }
        }
    }

    /// Lets the job go on, for good.
    pub fn resume(self) {}
}
