//! How often something is done in a second by several at once: the ceilings that need no HTTP.

use crate::failure::Failure;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What one of several repeats.
pub(super) trait Repeated: Sized + Send + 'static {
    /// Does it once: how many that were.
    fn once(&mut self) -> impl Future<Output = Result<u32, Failure>> + Send;

    /// Gives back what it has.
    fn end(self) {}
}

/// How many these do together in a second, measured for so long; each has a task of its own.
///
/// # Errors
///
/// The first that one of them meets.
pub(super) async fn per_second<R: Repeated>(
    workers: impl IntoIterator<Item = R>,
    time: Duration,
) -> Result<f64, Failure> {
    let (begun, mut running) = (Instant::now(), JoinSet::new());
    for mut worker in workers {
        running.spawn(async move {
            let mut done = 0;
            while begun.elapsed() < time {
                done += worker.once().await?;
            }
            worker.end();
            Ok::<u32, Failure>(done)
        });
    }
    let mut done = 0;
    while let Some(worker) = running.join_next().await {
        done += worker.map_err(failed)??;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}

pub(super) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Unusable(format!("the ceiling cannot be measured: {error}"))
}
