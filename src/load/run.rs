//! One run of load against one strategy: so many threads, so many requests each, the stock reset before.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What to send, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The address to load: an instance or nginx, as `http://127.0.0.1:8080`.
    pub base: String,
    /// `one` instance or `three` behind nginx: the label of the row.
    pub target: String,
    /// The strategy's slug.
    pub strategy: String,
    /// Connections, each of which sends one request after the other.
    pub threads: usize,
    /// Requests of each connection.
    pub loops: usize,
    /// How long each stays inside the critical section, in milliseconds.
    pub hold_ms: u64,
    /// Which product.
    pub stock_id: i64,
    /// The stock at the start.
    pub count: i64,
    /// What `PUT /stock` asks for where the cluster has an admin token.
    #[serde(skip)]
    pub token: Option<Token>,
}

/// x
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

/// How a run stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, utoipa::ToSchema)]
#[allow(missing_docs)]
pub struct Snapshot {
    /// Requests answered or failed so far.
    pub samples: u64,
    /// Requests that the run will send.
    pub planned: u64,
    pub sold: u64,
    pub sold_out: u64,
    pub errors: u64,
    /// Requests whose effect cannot be known.
    pub unknown: u64,
    pub elapsed_ms: u64,
    /// Answers per second, over the whole run so far.
    pub throughput: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Answers by instance (header `x-instance`).
    pub instances: BTreeMap<String, u64>,
}

/// Runs a plan to its end, or until it is cancelled.
///
/// # Errors
///
/// [`Failure::Unusable`] where the target does not answer at all.
///
/// # Cancel safety
///
/// Dropping the future closes every connection; what is under way at the server ends there.
pub async fn run(
    _plan: &Plan,
    _progress: &watch::Sender<Snapshot>,
    _cancel: &CancellationToken,
) -> Result<super::Row, Failure> {
    Err(Failure::Unusable("not written yet".into()))
}
