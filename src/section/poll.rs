//! How who waits by asking again pauses: around the course's time, so that those who wait do not ask in step.
//!
//! In step, all would ask at the same moment, find the lock taken, and sleep while it is free; and whoever was just served
//! would ask again before they do, for as long as it has requests.

use super::Job;
use crate::error::Error;
use std::time::Duration;

/// Pauses before the next try, for `around` ±50 % and no longer than the job may wait. Says [`Error::NotHad`] of `what`
/// where that was over before.
pub(crate) async fn pause(
    job: &Job,
    around: Duration,
    what: impl FnOnce() -> String,
) -> Result<(), Error> {
    let left = job.wait_left();
    if left.is_zero() {
        return Err(Error::NotHad {
            what: what(),
            waited: job.request.wait,
        });
    }
    tokio::time::sleep(drawn(around).min(left)).await;
    Ok(())
}

fn drawn(around: Duration) -> Duration {
    around.mul_f64(0.5 + fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_from_a_half_to_one_and_a_half() {
        const AROUND: Duration = Duration::from_millis(200);
        let drawn: Vec<_> = (0..1000).map(|_| drawn(AROUND)).collect();
        assert!(
            drawn
                .iter()
                .all(|pause| (AROUND / 2..=AROUND * 3 / 2).contains(pause))
        );
        // Each tenth of the range has some: they are not the same few.
        for tenth in 0..10 {
            let from = AROUND / 2 + AROUND * tenth / 10;
            assert!(
                drawn
                    .iter()
                    .any(|pause| (from..from + AROUND / 10).contains(pause)),
                "none from {from:?}"
            );
        }
    }
}
