//! One order that a user asks for, and what it comes to.

use crate::section::{Job, LockState};
use std::time::Duration;

/// What a step is asked to do.
#[derive(Debug)]
pub struct Order {
    /// Which voucher.
    pub voucher_id: i64,
    /// For whom.
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
    /// What the unlock found; none where there is no lock, or the server did not say.
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
