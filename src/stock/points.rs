//! Named points in a lesson's code path, at which it can be watched and stopped: so that a race is replayed, and not waited
//! for.
//!
//! 1. A strategy says where it is, and what it has there: `job.at("locked").await`, `job.tell("read", count).await`. Nobody
//!    follows it: it goes on at once.
//! 2. Who follows a job ([`Job::followed`](super::Job::followed)) sees each point, and names those at which it is to stand
//!    still; it lets it go on by naming others. A replay does so.
//! 3. A test that needs one stop asks for that one ([`Job::pause_at`](super::Job::pause_at)).
//!
//! No request ever asks: it is for the lessons' replays and their tests.

use std::{fmt::Display, time::Duration};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// The points at which somebody works who has the lock: what people follow.
const LINGERED: [&str; 3] = ["locked", "read", "written"];

/// The points of one job. Cloning it is cheap, and free where nobody has asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Points {
    gates: Vec<Gate>,
    follower: Option<Follower>,
}

#[derive(Debug, Clone)]
struct Gate {
    point: &'static str,
    reached: CancellationToken,
    open: CancellationToken,
}

#[derive(Debug, Clone)]
struct Follower {
    seen: mpsc::UnboundedSender<Sight>,
    stops: watch::Receiver<Vec<String>>,
    linger: Duration,
}

/// A job was seen at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Which point.
    pub point: &'static str,
    /// What it has there: a count that was read, an owner that was found.
    pub value: Option<String>,
}

/// A stop that was asked for. Dropping it lets the job go on.
#[derive(Debug)]
#[must_use = "the job is let on as soon as its pause is dropped"]
pub struct Pause {
    reached: CancellationToken,
    open: CancellationToken,
}

impl Points {
    /// Stops the first who comes by `point`.
    pub(crate) fn pause_at(&mut self, point: &'static str) -> Pause {
        let (reached, open) = (CancellationToken::new(), CancellationToken::new());
        self.gates.push(Gate {
            point,
            reached: reached.clone(),
            open: open.clone(),
        });
        Pause { reached, open }
    }

    /// Tells `seen` of each point, and stands still at each that is among `stops`. Who drops the other end of `stops` lets
    /// it go on. At each of the [points of work](LINGERED) it stays for `linger`, so that people can follow.
    pub(crate) fn follow(
        &mut self,
        seen: mpsc::UnboundedSender<Sight>,
        stops: watch::Receiver<Vec<String>>,
        linger: Duration,
    ) {
        self.follower = Some(Follower {
            seen,
            stops,
            linger,
        });
    }

    /// Comes by `point`.
    pub(crate) async fn at(&self, point: &'static str) {
        self.pass(point, None).await;
    }

    /// Comes by `point`, having `value`.
    pub(crate) async fn tell(&self, point: &'static str, value: impl Display) {
        let value = self.follower.is_some().then(|| value.to_string());
        self.pass(point, value).await;
    }

    async fn pass(&self, point: &'static str, value: Option<String>) {
        for gate in self
            .gates
            .iter()
            .filter(|gate| gate.point == point && !gate.reached.is_cancelled())
        {
            gate.reached.cancel();
            gate.open.cancelled().await;
        }
        if let Some(Follower {
            seen,
            stops,
            linger,
        }) = &self.follower
        {
            let mut stops = stops.clone();
            // Who does not listen any more stops it no more either.
            if seen.send(Sight { point, value }).is_ok() {
                drop(
                    stops
                        .wait_for(|stops| !stops.iter().any(|stop| stop == point))
                        .await,
                );
                if LINGERED.contains(&point) {
                    tokio::time::sleep(*linger).await;
                }
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
