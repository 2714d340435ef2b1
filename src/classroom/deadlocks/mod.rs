//! \[003\] Deadlocks in MySQL, each with its cure, played by two transactions on the real server.
//!
//! 1. A lesson is a file with two scripts, without the cure and with it: who sends which statement, in which order.
//! 2. `two_transactions.rs` plays one: the next statement is sent once the last one is answered, or once the server shows that it
//!    waits for a row lock. So the order is forced, and the same at each play.
//! 3. Each play has a table of its own (`table.rs`) and drops it.
//!
//! What it survives: others who use the server, other instances too. **What breaks it**: nothing; but the server keeps
//! only its latest deadlock, so that another one may take the place of ours in the answer, which then says so.
//!
//! Next: `lesson.rs`.

mod full_scan;
mod gap;
mod lesson;
mod lock_wait;
mod opposite_order;
mod shared_to_exclusive;
mod shown;
mod step;
mod table;
mod transaction;
mod two_transactions;

pub(crate) use lesson::BEGIN;
pub use lesson::{DEADLOCK, DeadlockLesson, LOCK_WAIT_TIMEOUT, Side};
pub use shown::DeadlockPlan;
pub use step::{DeadlockReplay, DeadlockStep};
pub use table::drop_abandoned_tables;
pub(crate) use two_transactions::TwoTransactions;
pub use two_transactions::replay;

/// Every lesson, in the order of the text.
pub const ALL: &[DeadlockLesson] =
    &[opposite_order::LESSON, shared_to_exclusive::LESSON, full_scan::LESSON, gap::LESSON, lock_wait::LESSON];

/// The lesson of this slug.
pub fn find(slug: &str) -> Option<&'static DeadlockLesson> {
    ALL.iter().find(|lesson| lesson.slug == slug)
}
