//! How a strategy that lost a race tries again: after a random pause that doubles, as long as the job may wait.
//!
//! The jitter is full (from nothing to the bound), so that those who collided once do not meet again.

use super::Job;
use crate::error::Error;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(32);

/// The pauses of one job.
#[derive(Debug)]
pub(super) struct Backoff<'a> {
    job: &'a Job,
    what: &'static str,
    bound: Duration,
    retries: u32,
}

impl<'a> Backoff<'a> {
    pub(super) fn new(job: &'a Job, what: &'static str) -> Self {
        Self { job, what, bound: FIRST, retries: 0 }
    }

    pub(super) fn retries(&self) -> u32 {
        self.retries
    }

    /// Waits before the next attempt, or says that there is no time for one.
    pub(super) async fn pause(&mut self) -> Result<(), Error> {
        let pause = self.bound.mul_f64(fastrand::f64());
        if pause >= self.job.wait_left() {
            return Err(Error::NotHad { what: self.what.into(), waited: self.job.wait });
        }
        tokio::time::sleep(pause).await;
        self.bound = (self.bound * 2).min(LONGEST);
        self.retries += 1;
        Ok(())
    }
}
