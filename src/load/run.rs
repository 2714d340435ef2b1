//! One run of load against one strategy: so many threads, so many requests each, the stock reset before.

use super::{
    Row, answer,
    engine::{Load, Seen},
    history::History,
    link::Origin,
    stock_api::StockApi,
    verdict::Shelf,
};
use crate::{failure::Failure, stock};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A snapshot is taken this often.
const SNAPSHOTS: Duration = Duration::from_millis(200);

/// What to send, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    pub token: Option<SecretString>,
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

/// Runs a plan to its end, or until it is cancelled: sets the stock, sends the load, reads the stock.
///
/// Once cancelled, no further request is sent; those under way have one second to be answered and count as unknown
/// otherwise. A request is never sent twice, whatever becomes of its connection.
///
/// # Errors
///
/// [`Failure::Unusable`] where the target does not answer at all, or the strategy is not one.
///
/// # Cancel safety
///
/// Dropping the future closes every connection; what is under way at the server ends there.
pub async fn run(plan: &Plan, progress: &watch::Sender<Snapshot>, cancel: &CancellationToken) -> Result<Row, Failure> {
    let strategy = stock::find(&plan.strategy)
        .ok_or_else(|| Failure::Unusable(format!("there is no strategy {}", plan.strategy)))?;
    if plan.threads == 0 || plan.loops == 0 {
        return Err(Failure::Unusable("threads and loops are 1 or more".into()));
    }
    let origin = Origin::parse(&plan.base)?;
    let path = format!("/check/lock/{}?stock_id={}&hold_ms={}", strategy.slug, plan.stock_id, plan.hold_ms);
    let request = origin.request(http::Method::POST, &path)?;
    let stock = StockApi { origin: &origin, stock_id: plan.stock_id };

    stock.reset(plan.count, plan.token.as_ref()).await?;
    let before = stock.count(strategy.store).await?;
    let load =
        Load { origin: origin.clone(), request, threads: plan.threads, loops: plan.loops, meaning: answer::meaning };
    progress.send_replace(Snapshot { planned: plan.planned(), ..Snapshot::default() });
    let ended = load.send(cancel, |seen| follow(seen, plan.planned(), progress)).await?;
    let after = stock.count(strategy.store).await?;

    progress.send_replace(Snapshot::of(&ended.history, plan.planned(), ended.elapsed));
    Ok(Row::new(plan, strategy, Shelf { before, after }, &ended))
}

impl Plan {
    /// Requests that the run will send.
    #[must_use]
    pub fn planned(&self) -> u64 {
        (self.threads as u64) * (self.loops as u64)
    }
}

/// Sends snapshots for as long as it is let.
async fn follow(seen: Arc<Seen>, planned: u64, progress: &watch::Sender<Snapshot>) {
    let mut ticks = tokio::time::interval(SNAPSHOTS);
    loop {
        ticks.tick().await;
        let snapshot = Snapshot::of(&seen.history(), planned, seen.elapsed());
        progress.send_replace(snapshot);
    }
}

impl Snapshot {
    fn of(history: &History, planned: u64, elapsed: Duration) -> Self {
        let counts = history.counts();
        let ms = |quantile| history.latencies().value_at_quantile(quantile) as f64 / 1000.0;
        let seconds = elapsed.as_secs_f64();
        Self {
            samples: counts.samples(),
            planned,
            sold: counts.sold,
            sold_out: counts.sold_out,
            errors: counts.refused,
            unknown: counts.unknown,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            throughput: if seconds > 0.0 { counts.samples() as f64 / seconds } else { 0.0 },
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            instances: history.instances().clone(),
        }
    }
}
