//! What a lesson on deadlocks is, and what each of its statements comes to.
//!
//! Next: `replay.rs`, which plays them.

use crate::bilingual::Bilingual;
use serde::Serialize;
use utoipa::ToSchema;

/// A deadlock was found, and this transaction was rolled back to end it.
pub const DEADLOCK: u16 = 1213;
/// A row lock was not had in time; only the statement was undone, the transaction is still open.
pub const LOCK_WAIT_TIMEOUT: u16 = 1205;

pub(super) const BEGIN: &str = "START TRANSACTION";
pub(super) const COMMIT: &str = "COMMIT";

/// One way in which transactions stand in each other's way, and its cure.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadlockLesson {
    /// Its name in the address.
    #[schema(example = "opposite-order")]
    pub slug: &'static str,
    /// What the transactions do.
    pub title: Bilingual,
    /// What breaks.
    pub breaks: Bilingual,
    /// What mends it.
    pub cure: Bilingual,
    /// The server's error without the cure.
    #[schema(example = 1213)]
    pub error: u16,
    /// How long a statement waits for a row lock before error 1205, in seconds.
    #[schema(example = 10)]
    pub wait_s: u8,
    /// An index that is the cure.
    #[serde(skip)]
    pub(super) index: Option<&'static str>,
    /// A statement whose plan is shown, before and after the index.
    #[serde(skip)]
    pub(super) explain: Option<&'static str>,
    #[serde(skip)]
    pub(super) uncured: &'static [Step],
    #[serde(skip)]
    pub(super) cured: &'static [Step],
}

/// One statement of one of the two transactions. The table is called `goods` here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    A(&'static str),
    B(&'static str),
}

impl Step {
    pub(super) fn parts(self) -> (Side, &'static str) {
        match self {
            Self::A(sql) => (Side::A, sql),
            Self::B(sql) => (Side::B, sql),
        }
    }
}

/// One of the two transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// One statement, and what it came to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DeadlockStep {
    /// Whose it is.
    pub side: Side,
    /// Which attempt of its transaction: 2 and more are retries.
    #[schema(example = 1)]
    pub attempt: usize,
    /// The statement.
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
    /// How many rows its transaction had locked after it; absent where the server does not show it to us.
    #[schema(example = 2)]
    pub row_locks: Option<u64>,
}

impl DeadlockStep {
    /// One that is not answered yet.
    pub(super) fn sent(side: Side, attempt: usize, sql: String) -> Self {
        Self {
            side,
            attempt,
            sql,
            waited_until: None,
            error: None,
            message: None,
            row_locks: None,
        }
    }
}
