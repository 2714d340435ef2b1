//! Running a strategy again after the server has rolled it back: what the retried strategies share.
//!
//! 1. Run the strategy as it is, from its first statement to its COMMIT.
//! 2. The server has rolled it back: to end a deadlock, or since another node of a Galera cluster has committed a write to the
//!    same row (error 1213), or since the row has changed after the transaction's snapshot (1020). So nothing was done: pause
//!    for a random time, at most 1 ms, then 2, 4, … 32 ms (full jitter), and run it again, as long as the request may wait.
//! 3. Everything else is the answer. A write without an answer ([`Error::Unknown`]) may have been done: it is never sent again.
//!
//! What it survives: any number of nodes that write to one row. **What breaks it**: nothing; but each attempt that is rolled back
//! was work, the more so the more nodes write to the row.
//!
//! Next: `single_update_node_buckets.rs`, where each node has a row of its own.

use super::Deduct;
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job, Point},
};
use std::time::Duration;

/// The bound of the first random pause; it doubles with each rollback: short for two that collide, long for a crowd.
const FIRST_CONFLICT_PAUSE: Duration = Duration::from_millis(1);
/// The bound grows no further than this.
const MAX_CONFLICT_PAUSE: Duration = Duration::from_millis(32);

/// Takes a piece by `strategy`, again after each rollback within the wait of the job; then fails with the last one's error.
pub(super) async fn deduct(ctx: &Ctx, job: &Job, strategy: Deduct) -> Result<Deduction, Error> {
    let (mut bound, mut retries) = (FIRST_CONFLICT_PAUSE, 0);
    loop {
        match strategy(ctx, job).await {
            Ok(sold) => {
                return Ok(Deduction { retries: retries + sold.retries, ..sold });
            }
            // Before the end of the wait, these errors mean a rollback.
            Err(rolled_back @ (Error::Timeout { .. } | Error::RowChanged)) => {
                let pause = bound.mul_f64(fastrand::f64());
                if pause >= job.wait_left() {
                    return Err(rolled_back);
                }
                job.reach(Point::Conflict).await;
                tokio::time::sleep(pause).await;
            }
            Err(other) => return Err(other),
        }
        (bound, retries) = ((bound * 2).min(MAX_CONFLICT_PAUSE), retries + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, server::Server};
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// Runs a strategy through [`deduct`]: its attempts, and the outcome.
    async fn ran(attempts: &AtomicU32, wait: Duration, strategy: Deduct) -> (u32, Result<Deduction, Error>) {
        let ctx = Ctx::new(Config::load(&[]).expect("the defaults")).expect("good addresses");
        let job = Job::new(1, Duration::ZERO, wait);
        let outcome = deduct(&ctx, &job, strategy).await;
        (attempts.load(Relaxed), outcome)
    }

    #[tokio::test]
    async fn a_rolled_back_transaction_is_retried_and_counted() {
        static ATTEMPTS: AtomicU32 = AtomicU32::new(0);
        let (attempts, sold) = ran(&ATTEMPTS, Duration::from_secs(60), |_, job| {
            Box::pin(async {
                match ATTEMPTS.fetch_add(1, Relaxed) {
                    0..3 => Err(job.timed_out("row in MySQL")),
                    _ => Ok(Deduction { retries: 2, ..Deduction::remaining(7) }),
                }
            })
        })
        .await;
        let sold = sold.expect("a piece");
        assert_eq!((attempts, sold.retries, sold.remaining), (4, 5, Some(7)));
    }

    /// The piece of an unanswered write may be sold; sending it again could sell two.
    #[tokio::test]
    async fn a_write_whose_outcome_is_unknown_is_not_sent_again() {
        static ATTEMPTS: AtomicU32 = AtomicU32::new(0);
        let (attempts, outcome) = ran(&ATTEMPTS, Duration::from_secs(60), |_, _| {
            Box::pin(async {
                ATTEMPTS.fetch_add(1, Relaxed);
                Err(Error::unknown_outcome(Server::MySql, "the connection was cut"))
            })
        })
        .await;
        let unknown = matches!(outcome, Err(Error::Unknown { .. }));
        assert_eq!((attempts, unknown), (1, true));
    }

    #[tokio::test]
    async fn at_the_end_of_its_wait_it_says_that_the_row_was_not_had() {
        static ATTEMPTS: AtomicU32 = AtomicU32::new(0);
        let (attempts, outcome) = ran(&ATTEMPTS, Duration::from_millis(50), |_, job| {
            Box::pin(async {
                ATTEMPTS.fetch_add(1, Relaxed);
                Err(job.timed_out("row in MySQL"))
            })
        })
        .await;
        let refused = matches!(outcome, Err(Error::Timeout { .. }));
        assert_eq!((attempts > 1, refused), (true, true));
    }
}
