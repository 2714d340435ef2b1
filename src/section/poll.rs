//! How a polling waiter pauses: the course's time ±50 %, so that waiters do not poll in step.
//!
//! In step, all waiters would poll at the same moment, find the lock taken, and sleep while it is free; the client that
//! was just served would get in again before they wake, for as long as it has requests.

use super::Job;
use crate::error::Error;
use std::time::Duration;

/// Pauses before the next attempt, for `around` ±50 %, at most as long as the job may still wait: so a last attempt comes at
/// the end of the wait. [`Error::Timeout`] for `what`, at once, if that end has passed.
pub(crate) async fn pause_before_retry(job: &Job, around: Duration, what: impl FnOnce() -> String) -> Result<(), Error> {
    let left = job.wait_left();
    if left.is_zero() {
        return Err(Error::Timeout { what: what(), waited: job.request.wait });
    }
    tokio::time::sleep(random_around(around).min(left)).await;
    Ok(())
}

/// A random time of `around` ±50 %.
fn random_around(around: Duration) -> Duration {
    around.mul_f64(0.5 + fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_from_a_half_to_one_and_a_half() {
        const AROUND: Duration = Duration::from_millis(200);
        let drawn: Vec<_> = (0..1000).map(|_| random_around(AROUND)).collect();
        assert!(drawn.iter().all(|pause| (AROUND / 2..=AROUND * 3 / 2).contains(pause)));
        // Values fall into every tenth of the range.
        for tenth in 0..10 {
            let from = AROUND / 2 + AROUND * tenth / 10;
            assert!(drawn.iter().any(|pause| (from..from + AROUND / 10).contains(pause)), "none from {from:?}");
        }
    }
}
