//! Named points in a lesson's code path, at which it can be stopped: so that a race is replayed, and not waited for.
//!
//! 1. A strategy says where it is: `job.at("read").await`. Nobody has asked to stop there: it goes on at once.
//! 2. Who has asked ([`Job::pause_at`](super::Job::pause_at)) is told that the job is there, does what the other side
//!    of the race does, and lets it go on.
//!
//! No request ever asks: it is for the lessons' replays and their tests.

use tokio_util::sync::CancellationToken;

/// The points of one job. Cloning it is free where nobody has asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Points(Vec<Gate>);

#[derive(Debug, Clone)]
struct Gate {
    point: &'static str,
    reached: CancellationToken,
    open: CancellationToken,
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
        self.0.push(Gate { point, reached: reached.clone(), open: open.clone() });
        Pause { reached, open }
    }

    /// Comes by `point`.
    pub(crate) async fn at(&self, point: &'static str) {
        for gate in self.0.iter().filter(|gate| gate.point == point && !gate.reached.is_cancelled()) {
            gate.reached.cancel();
            gate.open.cancelled().await;
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
