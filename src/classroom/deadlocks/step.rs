//! The result of a play, statement by statement.

use super::{lesson::Side, shown::DeadlockPlan};
use serde::Serialize;
use utoipa::ToSchema;

/// A statement and its result.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DeadlockStep {
    pub side: Side,
    /// Which attempt of its transaction: 2 and more are retries.
    #[schema(example = 1)]
    pub attempt: usize,
    #[schema(example = "UPDATE deadlock_5f3a0c11 SET count = count - 1 WHERE id = 20")]
    pub sql: String,
    /// It waited for a row lock, and was answered only after the step of this number, counted from 1.
    #[schema(example = 6)]
    pub waited_until: Option<usize>,
    /// The server's error: 1213 a deadlock, 1205 the end of the wait.
    #[schema(example = 1213)]
    pub error: Option<u16>,
    /// The server's words for it.
    #[schema(example = "Deadlock found when trying to get lock; try restarting transaction")]
    pub message: Option<String>,
    /// How many rows its transaction had locked after it; absent if the server does not show it to us.
    #[schema(example = 2)]
    pub row_locks: Option<u64>,
}

impl DeadlockStep {
    /// A step whose statement is not answered yet.
    pub(super) fn unanswered(side: Side, attempt: usize, sql: String) -> Self {
        Self { side, attempt, sql, waited_until: None, error: None, message: None, row_locks: None }
    }
}

/// The result of a play: its statements, the victim and its error, and which transactions were committed.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadlockReplay {
    #[schema(example = "opposite-order")]
    pub lesson: &'static str,
    /// Whether the cure was in force.
    pub cured: bool,
    /// Every statement, in the order in which they were sent.
    pub steps: Vec<DeadlockStep>,
    /// The transaction that got the error.
    pub victim: Option<Side>,
    #[schema(example = 1213)]
    pub error: Option<u16>,
    /// Which transactions were committed in the end.
    pub committed: Vec<Side>,
    /// How often a whole transaction was begun again.
    #[schema(example = 0)]
    pub retries: usize,
    /// The plan of the statement that the lesson is about.
    pub plans: Vec<DeadlockPlan>,
    /// The part LATEST DETECTED DEADLOCK of SHOW ENGINE INNODB STATUS, or why it is not shown; absent if there was no
    /// deadlock.
    pub latest_deadlock: Option<String>,
}
