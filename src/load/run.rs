//! One run of load against one strategy, on a product of its own: made before, removed after, so that nobody else in
//! the room changes what is counted, and the run changes nothing of theirs.

use super::{
    Row, answer,
    asks::Same,
    engine::{Load, Seen, Timed, Until},
    history::History,
    lanes::{self, Lanes},
    link::Origin,
    stock_api::StockApi,
    verdict::Shelf,
};
use crate::{
    failure::Failure,
    stock::{self, Strategy},
};
use http::{HeaderValue, header};
use secrecy::SecretString;
use serde::Serialize;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// A snapshot is taken this often.
const SNAPSHOTS: Duration = Duration::from_millis(200);
/// Requests of a run at most, and what they may ask for together: all held one after the other, ms.
const MOST_REQUESTS: u64 = 1_000_000;
const MOST_HELD_MS: u64 = 600_000;
/// The stock where a rate is measured: nobody sells so much.
pub(super) const PLENTY: i64 = 1_000_000_000;

/// What to send, and where.
#[derive(Debug, Clone, Serialize)]
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
    /// Keep who was inside when, to be drawn.
    #[serde(skip)]
    pub draws: bool,
    /// Send for a time, instead of `loops`.
    #[serde(skip)]
    pub(super) timed: Option<Timed>,
}

/// A product of a run's own.
pub(crate) fn own_product() -> i64 {
    fastrand::i64(1 << 40..1 << 52)
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
    /// How often the strategies tried anew, as far as the answers say.
    pub retries: u64,
    pub elapsed_ms: u64,
    /// Answers per second, over the whole run so far.
    pub throughput: f64,
    /// Answers in the last second.
    pub pace: u64,
    /// Requests that were sent and not answered yet.
    pub unanswered: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Answers by instance (header `x-instance`).
    pub instances: BTreeMap<String, u64>,
    /// Of a run of few requests, those who were inside so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
}

/// Runs a plan to its end, or until it is cancelled: makes the product, sends the load, reads the stock, removes the
/// product, whatever came of the load.
///
/// Once cancelled, no further request is sent; those under way have one second to be answered and count as unknown
/// otherwise. A request is never sent twice, whatever becomes of its connection. A run ends within 15 minutes.
///
/// # Errors
///
/// [`Failure::Unusable`] where the target does not answer at all, the strategy is not one, or the plan asks for more
/// than a run may.
///
/// # Cancel safety
///
/// Dropping the future closes every connection, and leaves the product. Cancel instead.
pub async fn run(
    plan: &Plan,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<Row, Failure> {
    let strategy = stock::find(&plan.strategy)
        .ok_or_else(|| Failure::Unusable(format!("there is no strategy {}", plan.strategy)))?;
    plan.check().map_err(Failure::Unusable)?;
    let origin = Origin::parse(&plan.base)?;
    let stock = StockApi {
        base: &plan.base,
        stock_id: plan.stock_id,
        strategy,
        token: plan.token.as_ref(),
    };
    stock.reset(plan.count).await?;
    let measured = measure(plan, strategy, origin, &stock, progress, cancel).await;
    match (measured, stock.remove().await) {
        (Ok(mut row), Err(why)) => {
            row.notes.push(why.to_string());
            Ok(row)
        }
        (measured, _) => measured,
    }
}

async fn measure(
    plan: &Plan,
    strategy: &Strategy,
    origin: Origin,
    stock: &StockApi<'_>,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<Row, Failure> {
    let path = format!(
        "/check/lock/{}?stock_id={}&hold_ms={}",
        strategy.slug, plan.stock_id, plan.hold_ms
    );
    let mut request = origin.request(http::Method::POST, &path)?;
    request
        .headers_mut()
        .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let before = stock.count().await?;
    let until = plan.timed.map_or(Until::Loops(plan.loops), Until::Over);
    let load = Load {
        origin,
        asks: Same::boxed(request, answer::meaning),
        threads: plan.threads,
        until,
        draws: plan.draws,
    };
    progress.send_replace(Snapshot {
        planned: plan.planned(),
        ..Snapshot::default()
    });
    let ended = load
        .send(cancel, |seen| follow(seen, plan.planned(), progress))
        .await?;
    let after = stock.count().await?;

    let Snapshot { pace, lanes, .. } = progress.borrow().clone();
    progress.send_replace(Snapshot {
        pace,
        lanes,
        ..Snapshot::of(&ended.counted, plan.planned(), ended.elapsed)
    });
    Ok(Row::new(
        plan,
        strategy,
        Shelf { before, after },
        &ended,
        cancel.is_cancelled(),
    ))
}

impl Plan {
    /// The course's load of 100 × 50 requests against a strategy at `base`, on a product that nobody else uses: its id
    /// is beyond those that a person types, and exact in JavaScript too.
    #[must_use]
    pub fn new(base: &str, target: &str, strategy: &str) -> Self {
        Self {
            base: base.into(),
            target: target.into(),
            strategy: strategy.into(),
            threads: 100,
            loops: 50,
            hold_ms: 0,
            stock_id: own_product(),
            count: 5000,
            token: None,
            draws: false,
            timed: None,
        }
    }

    /// The same for a time instead, with more stock than anybody sells, on a product of its own again.
    pub(super) fn timed(&self, timed: Timed) -> Self {
        Self {
            timed: Some(timed),
            count: PLENTY,
            hold_ms: 0,
            stock_id: own_product(),
            ..self.clone()
        }
    }

    /// The same for a time instead: so long before it counts, and so long that it does.
    #[must_use]
    pub fn lasting(&self, warm_up: Duration, measured: Duration) -> Self {
        self.timed(Timed {
            warm_up,
            measured,
            rate: None,
        })
    }

    /// Requests that the run will send; of one that lasts a time, 0: that cannot be known.
    #[must_use]
    pub fn planned(&self) -> u64 {
        if self.timed.is_some() {
            0
        } else {
            (self.threads as u64).saturating_mul(self.loops as u64)
        }
    }

    /// Whether the run has an end within reach.
    ///
    /// # Errors
    ///
    /// The rule that it breaks.
    pub fn check(&self) -> Result<(), String> {
        let held = self.planned().saturating_mul(self.hold_ms);
        if self.threads == 0 || self.loops == 0 {
            Err("threads and loops are 1 or more".into())
        } else if self.planned() > MOST_REQUESTS {
            Err(format!("threads × loops is at most {MOST_REQUESTS}"))
        } else if held > MOST_HELD_MS {
            Err(format!(
                "threads × loops × hold_ms is at most {MOST_HELD_MS}, which is 10 minutes one after the other"
            ))
        } else {
            Ok(())
        }
    }
}

/// Sends snapshots for as long as it is let.
pub(super) async fn follow(seen: Arc<Seen>, planned: u64, progress: &watch::Sender<Snapshot>) {
    let mut ticks = tokio::time::interval(SNAPSHOTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pace = Pace::default();
    loop {
        ticks.tick().await;
        let snapshot = Snapshot::of(&seen.history(), planned, seen.elapsed());
        let unanswered = seen.begun().saturating_sub(snapshot.samples);
        let pace = pace.at(seen.elapsed(), snapshot.samples);
        let lanes = if planned <= lanes::MOST as u64 {
            seen.lanes()
        } else {
            None
        };
        progress.send_replace(Snapshot {
            pace,
            unanswered,
            lanes,
            ..snapshot
        });
    }
}

/// What was answered in the last second, from what was answered by then.
#[derive(Debug, Default)]
struct Pace(VecDeque<(Duration, u64)>);

impl Pace {
    fn at(&mut self, now: Duration, samples: u64) -> u64 {
        self.0.push_back((now, samples));
        while self
            .0
            .get(1)
            .is_some_and(|(then, _)| now - *then >= Duration::from_secs(1))
        {
            self.0.pop_front();
        }
        samples - self.0.front().map_or(0, |(_, then)| *then)
    }
}

impl Snapshot {
    pub(super) fn of(history: &History, planned: u64, elapsed: Duration) -> Self {
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
            retries: history.told().retries,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            throughput: if seconds > 0.0 {
                counts.samples() as f64 / seconds
            } else {
                0.0
            },
            pace: 0,
            unanswered: 0,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            instances: history.instances().clone(),
            lanes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_last_second_and_not_the_average() {
        let mut pace = Pace::default();
        let seen = [
            (0, 0),
            (200, 40),
            (800, 160),
            (1000, 200),
            (1200, 240),
            (2200, 240),
            (2400, 240),
        ];
        let told = seen.map(|(ms, samples)| pace.at(Duration::from_millis(ms), samples));
        assert_eq!(told, [0, 40, 160, 200, 200, 0, 0]);
    }
}
