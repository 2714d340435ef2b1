//! What the tests still use that do not register themselves.

use std::time::Duration;

type Outcome = Result<(), String>;

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Looks until it is so.
pub(crate) async fn until<F: Future<Output = Result<bool, String>>>(
    what: &str,
    holds: impl Fn() -> F,
) -> Outcome {
    until_seen(Duration::from_millis(5), what, holds).await
}

/// The same, looking that often: where each look costs what it looks at.
pub(crate) async fn until_seen<F: Future<Output = Result<bool, String>>>(
    every: Duration,
    what: &str,
    holds: impl Fn() -> F,
) -> Outcome {
    let looks = async {
        while !holds().await? {
            tokio::time::sleep(every).await;
        }
        Ok(())
    };
    tokio::time::timeout(LONG, looks)
        .await
        .map_err(|_| format!("never: {what}"))?
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
