//! How long a wait, a lease or an interval may be, and when a wait ends.

use std::time::Duration;
use tokio::time::Instant;

/// Returns the end of a wait that begins now, at most ten years, so that [`Duration::MAX`] means "for ever".
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait.min(MAX_DURATION)
}

/// Returns the rest of a wait that ends at `until`; zero once it has passed.
pub(crate) fn time_left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// The longest wait, lease and interval: ten years, which means "for ever" and is within what clocks can add. A longer wait
/// ends then; a longer lease or interval is refused.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
