//! What generator and nginx can do together at most: a static file, which no strategy can beat.

use super::{engine::Load, history::Outcome, link::Origin, stock_api};
use crate::failure::Failure;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// The smallest file that a cluster serves, and what it has in any case.
const FILES: [&str; 2] = ["/favicon.svg", "/"];

/// A static file under load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ceiling {
    /// The file.
    pub(super) path: &'static str,
    /// Its size.
    pub(super) bytes: usize,
    /// Connections.
    pub(super) threads: usize,
    /// Answers per second.
    pub(super) throughput: f64,
}

/// Loads a static file at `base`.
///
/// # Errors
///
/// [`Failure::Unusable`] where it is not served.
pub(super) async fn static_file(
    base: &str,
    threads: usize,
    loops: usize,
    cancel: &CancellationToken,
) -> Result<Ceiling, Failure> {
    let origin = Origin::parse(base)?;
    let (path, bytes) = smallest(&origin).await?;
    let request = origin.request(http::Method::GET, path)?;
    let load = Load { origin, request, threads, loops, meaning: served };
    let ended = load.send(cancel, |_| std::future::pending()).await?;
    match ended.history.reasons().iter().next() {
        Some((why, _)) if !cancel.is_cancelled() => Err(Failure::Unusable(format!("GET {path} at {base}: {why}"))),
        _ => Ok(Ceiling { path, bytes, threads, throughput: ended.stats.throughput }),
    }
}

async fn smallest(origin: &Origin) -> Result<(&'static str, usize), Failure> {
    for path in FILES {
        if let Some((200, bytes)) = stock_api::probe(origin, path).await {
            return Ok((path, bytes));
        }
    }
    Err(Failure::Unusable(format!("{origin} serves no static file ({})", FILES.join(", "))))
}

/// A file that is served is what a sale is to a strategy.
fn served(status: u16, _: &[u8]) -> Outcome {
    if status == 200 { Outcome::Sold } else { Outcome::Refused(status.to_string()) }
}
