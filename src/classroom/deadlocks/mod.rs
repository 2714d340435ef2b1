//! \[003\] Deadlocks in MySQL, each with its cure, played by two transactions on the real server.
//!
//! 1. A lesson is two scripts, without the cure and with it: who sends which statement, in which order. It has a file
//!    of its own.
//! 2. `replay.rs` plays one: the next statement is sent once the last one is answered, or once the server shows that it
//!    waits for a row lock. So the order is forced, and the same at each play.
//! 3. Each play has a table of its own (`table.rs`) and drops it.
//!
//! What it survives: others who use the server, other instances too. **What breaks it**: nothing; but the server keeps
//! only its latest deadlock, so that another one may take the place of ours in the answer, which then says so.
//!
//! Next: `opposite_order.rs`, then `replay.rs`.

mod followed;
mod full_scan;
mod gap;
mod lock_wait;
mod opposite_order;
mod replay;
mod shared_to_exclusive;
mod shown;
mod table;
mod transaction;

pub use followed::DeadlockSight;
pub use replay::{DeadlockReplay, DeadlockStep, Side, replay, replay_followed};
pub use shown::DeadlockPlan;

use crate::bilingual::Bilingual;
use serde::Serialize;
use utoipa::ToSchema;

/// A deadlock was found, and this transaction was rolled back to end it.
pub const DEADLOCK: u16 = 1213;
/// A row lock was not had in time; only the statement was undone, the transaction is still open.
pub const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// Every lesson, in the order of the text.
pub const ALL: &[DeadlockLesson] = &[
    opposite_order::LESSON,
    shared_to_exclusive::LESSON,
    full_scan::LESSON,
    gap::LESSON,
    lock_wait::LESSON,
];

const BEGIN: &str = "START TRANSACTION";
const COMMIT: &str = "COMMIT";

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
    index: Option<&'static str>,
    /// A statement whose plan is shown, before and after the index.
    #[serde(skip)]
    explain: Option<&'static str>,
    #[serde(skip)]
    uncured: &'static [Step],
    #[serde(skip)]
    cured: &'static [Step],
}

/// One statement of one of the two transactions. The table is called `goods` here.
#[derive(Debug, Clone, Copy)]
enum Step {
    A(&'static str),
    B(&'static str),
}

impl Step {
    fn parts(self) -> (Side, &'static str) {
        match self {
            Self::A(sql) => (Side::A, sql),
            Self::B(sql) => (Side::B, sql),
        }
    }
}

/// The lesson of this name.
#[must_use]
pub fn find(slug: &str) -> Option<&'static DeadlockLesson> {
    ALL.iter().find(|lesson| lesson.slug == slug)
}
