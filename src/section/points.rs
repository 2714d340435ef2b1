//! Named points in a lesson's code, where it can be observed and stopped: a race is replayed instead of hoped for.
//!
//! 1. A strategy reports where it is, and the value it has there: `job.at(Point::Locked).await`,
//!    `job.tell(Point::Read, count).await`. Without a follower it continues at once.
//! 2. A follower ([`Job::followed`](super::Job::followed)), such as a replay, receives each point and names those at
//!    which the job stops; naming others lets it continue.
//! 3. A test that needs a single stop asks for that one ([`Job::pause_at`](super::Job::pause_at)).
//!
//! No request can ask for a stop: stops are for replays and tests.

use serde::{Deserialize, Serialize};
use std::{fmt::Display, time::Duration};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Declares the points, each with its name in events and between instances.
macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// A point in the code of a strategy, of a step of the seckill, or of what a replay plays besides.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Point {
            $($(#[$doc])* #[serde(rename = $name)] $point,)*
        }

        impl Point {
            /// Its name in events, and between instances.
            #[must_use]
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
    /// It has compared the owner in the lock with its own.
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
    /// Its renewal was answered.
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

/// The points at which the holder of a lock works, and which people follow.
const LINGERED: [Point; 3] = [Point::Locked, Point::Read, Point::Written];

impl Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The points of one job. Cloning it is cheap, and free where nobody follows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Points {
    gates: Vec<Gate>,
    follower: Option<Follower>,
}

#[derive(Debug, Clone)]
struct Gate {
    point: Point,
    reached: CancellationToken,
    open: CancellationToken,
}

#[derive(Debug, Clone)]
struct Follower {
    seen: mpsc::UnboundedSender<Reached>,
    stops: watch::Receiver<Vec<Point>>,
    linger: Duration,
}

/// A job has come to a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Which point.
    pub point: Point,
    /// What it has there: a count that was read, an owner that was found.
    pub value: Option<String>,
}

/// A stop that was asked for. Dropping it lets the job go on.
#[derive(Debug)]
#[must_use = "the job goes on as soon as its pause is dropped"]
pub struct Pause {
    reached: CancellationToken,
    open: CancellationToken,
}

impl Points {
    /// Stops the first that comes to `point`.
    pub(crate) fn pause_at(&mut self, point: Point) -> Pause {
        let (reached, open) = (CancellationToken::new(), CancellationToken::new());
        self.gates.push(Gate {
            point,
            reached: reached.clone(),
            open: open.clone(),
        });
        Pause { reached, open }
    }

    /// Tells `seen` of each point, and stops at each that is among `stops`, until that changes or its sender is dropped.
    /// At each of the [points of work](LINGERED) it stays for `linger`, so that people can follow.
    pub(crate) fn follow(
        &mut self,
        seen: mpsc::UnboundedSender<Reached>,
        stops: watch::Receiver<Vec<Point>>,
        linger: Duration,
    ) {
        self.follower = Some(Follower {
            seen,
            stops,
            linger,
        });
    }

    /// Comes to `point`.
    pub(crate) async fn at(&self, point: Point) {
        self.pass(point, None).await;
    }

    /// Comes to `point`, having `value`.
    pub(crate) async fn tell(&self, point: Point, value: impl Display) {
        let value = self.follower.is_some().then(|| value.to_string());
        self.pass(point, value).await;
    }

    async fn pass(&self, point: Point, value: Option<String>) {
        for gate in self
            .gates
            .iter()
            .filter(|gate| gate.point == point && !gate.reached.is_cancelled())
        {
            gate.reached.cancel();
            gate.open.cancelled().await;
        }
        let Some(follower) = &self.follower else {
            return;
        };
        // A follower that does not listen any more does not stop it either.
        if follower.seen.send(Reached { point, value }).is_ok() {
            let mut stops = follower.stops.clone();
            drop(stops.wait_for(|stops| !stops.contains(&point)).await);
            if LINGERED.contains(&point) {
                tokio::time::sleep(follower.linger).await;
            }
        }
    }
}

impl Pause {
    /// Waits until the job is there.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn reached(&self) {
        self.reached.cancelled().await;
    }

    /// Lets the job go on.
    pub fn go_on(self) {}
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.open.cancel();
    }
}
