//! Waiting for what a server does by itself: it is asked again and again, and given up after a time.

use crate::terminal::failure::{Failure, unusable};
use std::{fmt::Display, time::Duration};
use tokio::time::{sleep, timeout};

/// Asks until there is an answer, and returns it; the pause between two questions is a thousandth of `limit`. Fails at once with an
/// error of `ask`; after `limit` with [`Failure::Unusable`], which says `late`.
pub async fn wait_for<T, E: From<Failure>, F: Future<Output = Result<Option<T>, E>>>(
    limit: Duration,
    late: impl Display,
    ask: impl Fn() -> F,
) -> Result<T, E> {
    let asking = async {
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            sleep(limit / 1000).await;
        }
    };
    timeout(limit, asking).await.map_err(|_| unusable!("{late} within {} s", limit.as_secs()))?
}

/// As [`wait_for`], until `holds` is true.
pub async fn wait_until<E: From<Failure>, F: Future<Output = bool>>(
    limit: Duration,
    late: impl Display,
    holds: impl Fn() -> F,
) -> Result<(), E> {
    wait_for(limit, late, || async { Ok(holds().await.then_some(())) }).await
}
