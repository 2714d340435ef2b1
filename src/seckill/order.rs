//! The input of a step, and its result.

use crate::section::{Job, LockState};
use std::time::Duration;

/// The input of a step.
#[derive(Debug)]
pub struct Order {
    pub voucher_id: i64,
    pub user_id: i64,
    /// How long to wait and to stay inside, the lease, and the named points of a replay: `read` (the stock was enough),
    /// `checked` (the user has no order yet), `commit` (all is written, nothing committed), `committed`, and those of a
    /// step's own.
    pub job: Job,
}

/// An order was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderReceipt {
    /// Its number, from the [id worker](super::id_worker): in time it exceeds 2^53, beyond which JSON numbers of a browser
    /// lose digits.
    pub order_id: i64,
    /// The state of the lock at the unlock; none without a lock, or if the server did not answer.
    pub lock: Option<LockState>,
}

impl Order {
    /// An order that is asked for now; it stays inside for `hold` and waits for a lock or a row for `wait` at most.
    #[must_use]
    pub fn new(voucher_id: i64, user_id: i64, hold: Duration, wait: Duration) -> Self {
        Self {
            voucher_id,
            user_id,
            job: Job::new(voucher_id, hold, wait),
        }
    }

    /// The same, with this lease instead of the step's own.
    #[must_use]
    pub fn with_lease(self, lease: Option<Duration>) -> Self {
        Self {
            job: self.job.with_options(lease, None),
            ..self
        }
    }
}
