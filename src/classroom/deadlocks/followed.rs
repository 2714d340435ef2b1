//! A play that is followed: each statement waits until its follower lets it go on, and what it came to is told.
//!
//! Next: `transaction.rs`.

use super::lesson::{DeadlockStep, Side};
use tokio::sync::{mpsc, oneshot};

/// What a follower is told.
#[derive(Debug)]
pub enum DeadlockSight {
    /// This statement comes next. It is sent as soon as `go_on` is used, or dropped. The table is called `goods`.
    Next {
        /// Whose it is.
        side: Side,
        /// The statement.
        sql: &'static str,
        /// Lets it go on.
        go_on: oneshot::Sender<()>,
    },
    /// Its statement waits for a row lock.
    Waits(Side),
    /// A statement was answered.
    Answered(DeadlockStep),
}

/// Who follows a play, if anybody does.
#[derive(Debug, Clone, Default)]
pub(super) struct Follower(pub(super) Option<mpsc::UnboundedSender<DeadlockSight>>);

impl Follower {
    /// Waits until the follower lets the next statement go on.
    pub(super) async fn next(&self, side: Side, sql: &'static str) {
        if let Some(follower) = &self.0 {
            let (go_on, gone_on) = oneshot::channel();
            drop(follower.send(DeadlockSight::Next { side, sql, go_on }));
            drop(gone_on.await);
        }
    }

    /// Tells what is seen. Who does not listen any more need not.
    pub(super) fn tell(&self, sight: DeadlockSight) {
        drop(self.0.as_ref().map(|follower| follower.send(sight)));
    }
}
