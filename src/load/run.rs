//! One run of load, on a product or a voucher of its own, which is made before and removed afterwards. So nobody else changes what
//! is counted, and the run changes nothing of others.

use super::{
    answer,
    engine::{AnswerReader, Load, LoadProgress, LoadResult, RequestMaker, Until},
    history::History,
    lanes::{self, Lanes},
    link::{Body, Origin},
    plan::{Orders, Plan},
    row::{OrderCheck, Row, SaleResult},
    stock_api::StockApi,
    verdict::StockChange,
    voucher::{Buyers, LoadVoucher},
};
use crate::{
    seckill,
    stock::{self, Strategy},
};
use http::{HeaderValue, Request, header};
use oversell_lab::terminal::failure::{Failure, unusable};
use serde::Serialize;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How often a snapshot is taken: often enough that people see a number move.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);

/// How a run stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, utoipa::ToSchema)]
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
    /// How often the strategies tried again, as far as the answers say.
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
    /// Of a run of few requests, those that were inside so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
}

/// Runs a plan to its end, or until it is cancelled: makes the product or the voucher, sends the load, reads what is left, and
/// removes product or voucher in any case.
///
/// Once cancelled, no further request is sent; those under way have one second to be answered and count as unknown
/// otherwise. A request is never sent twice, whatever becomes of its connection. A run in loops ends within 15 minutes, a
/// timed one 40 s after its time. If the product or voucher cannot be removed, a note of the row says so.
/// Errors: [`Failure::Unusable`] where the product or voucher cannot be made or read, no connection opens, the strategy is not
/// one, or the plan asks for more than a run may.
/// Cancel safety: dropping the future closes every connection, and leaves the product or the voucher. Cancel instead.
pub async fn run(plan: &Plan, progress: &watch::Sender<Snapshot>, cancel: &CancellationToken) -> Result<Row, Failure> {
    plan.check().map_err(Failure::Unusable)?;
    let origin = Origin::parse(&plan.base)?;
    let (measured, removed) = match plan.orders {
        None => sell_product(plan, origin, progress, cancel).await?,
        Some(orders) => sell_voucher(plan, orders, origin, progress, cancel).await?,
    };
    let mut row = measured?;
    row.notes.extend(removed.err().map(|why| why.to_string()));
    Ok(row)
}

/// The measured row, and whether the run's own product or voucher could be removed.
type RunResult = (Result<Row, Failure>, Result<(), Failure>);

/// Runs a load on a product of its own.
async fn sell_product(
    plan: &Plan,
    origin: Origin,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<RunResult, Failure> {
    let stock = StockApi::of(plan, strategy_of(plan)?);
    stock.put(plan.count).await?;
    let measured = sell_from_stock(plan, origin, progress, cancel).await;
    Ok((measured, stock.remove().await))
}

/// As [`run`], for a product that is there, and stays: another one may buy of it too, and look at what the buyers leave.
/// Errors: [`Failure::Unusable`] where the stock cannot be read, no connection opens, or the strategy is not one.
pub async fn sell(plan: &Plan, progress: &watch::Sender<Snapshot>, cancel: &CancellationToken) -> Result<Row, Failure> {
    sell_from_stock(plan, Origin::parse(&plan.base)?, progress, cancel).await
}

fn strategy_of(plan: &Plan) -> Result<&'static Strategy, Failure> {
    let strategy = stock::find(&plan.strategy);
    strategy.ok_or_else(|| unusable!("there is no strategy {}", plan.strategy))
}

/// Sends the load of a plan, and compares the stock before and after.
async fn sell_from_stock(
    plan: &Plan,
    origin: Origin,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<Row, Failure> {
    let strategy = strategy_of(plan)?;
    let (stock, store) = (StockApi::of(plan, strategy), strategy.spec.store);
    let wait = plan.wait_ms.map(|ms| format!("&wait_ms={ms}"));
    let path =
        format!("/check/lock/{}?stock_id={}&hold_ms={}{}", plan.strategy, plan.stock_id, plan.hold_ms, wait.unwrap_or_default());
    let mut request = json_request(&origin, &path)?;
    *request.method_mut() = plan.method.clone();
    let visitor = plan.visitor.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(visitor)) = visitor {
        request.headers_mut().insert("x-visitor", visitor);
    }
    let make_request = Box::new(move |_| request.clone());
    let read_answer = Box::new(|_, status, body: &[u8]| answer::classify_answer(status, body));
    let before = stock.count(store).await?;
    let ended = send_load(plan, origin, make_request, read_answer, progress, cancel).await?;
    let after = stock.count(store).await?;
    let change = StockChange { before, after };
    let sold = SaleResult::product(strategy, change, ended.all.counts);
    Ok(Row::new(plan, sold, ended, cancel.is_cancelled()))
}

/// Runs a load on a voucher of its own.
async fn sell_voucher(
    plan: &Plan,
    to: Orders,
    origin: Origin,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<RunResult, Failure> {
    let step = seckill::find(&plan.strategy).ok_or_else(|| unusable!("there is no step {}", plan.strategy))?;
    let voucher = LoadVoucher::add(&plan.base, plan.count, plan.token.as_ref()).await?;
    let measured = async {
        let path = format!("/voucher-order/seckill/{}?strategy={}&hold_ms={}", voucher.id, step.slug, plan.hold_ms);
        let buyers = Arc::new(Buyers::new(json_request(&origin, &path)?, plan.stock_id, to));
        let (asking, answered) = (Arc::clone(&buyers), Arc::clone(&buyers));
        let make_request = Box::new(move |n| asking.request(n));
        let read_answer = Box::new(move |n, status, body: &[u8]| answered.classify_answer(n, status, body));
        let ended = send_load(plan, origin, make_request, read_answer, progress, cancel).await?;
        let counts = ended.all.counts;
        let (answers, tally) = buyers.answers(counts.unknown);
        let report = voucher.check_orders(&answers).await?;
        let sold = SaleResult::voucher(step, OrderCheck { to, tally, report }, counts);
        Ok(Row::new(plan, sold, ended, cancel.is_cancelled()))
    };
    Ok((measured.await, voucher.remove().await))
}

/// A POST that asks for an answer in JSON.
fn json_request(origin: &Origin, path: &str) -> Result<Request<Body>, Failure> {
    let mut request = origin.request(http::Method::POST, path)?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    Ok(request)
}

/// Sends the load of a plan, with snapshots of its progress; the last one has only the requests that count.
async fn send_load(
    plan: &Plan,
    origin: Origin,
    make_request: RequestMaker,
    read_answer: AnswerReader,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<LoadResult, Failure> {
    let load = Load {
        origin,
        make_request,
        read_answer,
        threads: plan.threads,
        until: plan.timed.map_or(Until::Loops(plan.loops), Until::Over),
        draws: plan.draws,
    };
    progress.send_replace(Snapshot { planned: plan.planned_requests(), ..Snapshot::default() });
    let ended = load.send(cancel, |seen| send_snapshots(seen, plan.planned_requests(), progress)).await?;
    let Snapshot { pace, lanes, .. } = progress.borrow().clone();
    progress.send_replace(Snapshot { pace, lanes, ..Snapshot::of(&ended.counted, plan.planned_requests(), ended.elapsed) });
    Ok(ended)
}

/// Sends a snapshot each [`SNAPSHOT_INTERVAL`] until the future is dropped.
async fn send_snapshots(seen: Arc<LoadProgress>, planned: u64, progress: &watch::Sender<Snapshot>) {
    let mut ticks = tokio::time::interval(SNAPSHOT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pace = LastSecond::default();
    loop {
        ticks.tick().await;
        let snapshot = Snapshot::of(&seen.lock_history(), planned, seen.elapsed());
        let unanswered = seen.claimed_requests().saturating_sub(snapshot.samples);
        let pace = pace.add_sample(seen.elapsed(), snapshot.samples);
        let lanes = if planned <= lanes::MAX_DRAWN as u64 { seen.lanes() } else { None };
        progress.send_replace(Snapshot { pace, unanswered, lanes, ..snapshot });
    }
}

/// Counts the answers of the last second, from the number of answers at each snapshot.
#[derive(Debug, Default)]
struct LastSecond(VecDeque<(Duration, u64)>);

impl LastSecond {
    /// Adds a snapshot; returns how many answers came in the last second.
    fn add_sample(&mut self, now: Duration, samples: u64) -> u64 {
        self.0.push_back((now, samples));
        while self.0.get(1).is_some_and(|(then, _)| now - *then >= Duration::from_secs(1)) {
            self.0.pop_front();
        }
        samples - self.0.front().map_or(0, |(_, then)| *then)
    }
}

impl Snapshot {
    /// The snapshot of a history, still without pace, unanswered requests and lanes.
    fn of(history: &History, planned: u64, elapsed: Duration) -> Self {
        let counts = history.counts;
        let ms = |quantile| history.latencies.value_at_quantile(quantile) as f64 / 1000.0;
        let seconds = elapsed.as_secs_f64();
        Self {
            samples: counts.samples(),
            planned,
            sold: counts.sold,
            sold_out: counts.sold_out,
            errors: counts.errors,
            unknown: counts.unknown,
            retries: history.retries,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            throughput: if seconds > 0.0 { counts.samples() as f64 / seconds } else { 0.0 },
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            instances: history.instances.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_last_second_and_not_the_average() {
        let mut pace = LastSecond::default();
        let seen = [(0, 0), (200, 40), (800, 160), (1000, 200), (1200, 240), (2200, 240), (2400, 240)];
        let told = seen.map(|(ms, samples)| pace.add_sample(Duration::from_millis(ms), samples));
        assert_eq!(told, [0, 40, 160, 200, 200, 0, 0]);
    }
}
