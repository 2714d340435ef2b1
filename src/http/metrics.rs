//! The metrics of `/metrics`. What a request counts in is made once, so that it only adds to a number. The metrics of a strategy are made
//! when it is first asked for, except its count of sales.

use crate::{
    error::Error,
    load::conditions::COMMIT,
    seckill::stream::Backlog,
    section::{Deduction, Job, LockState},
    stock::{self, Strategy},
    stock_admin::StockLevels,
};
use http::{Method, StatusCode};
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use metrics_process::Collector;
use parking_lot::RwLock;
use std::{collections::HashMap, sync::OnceLock, time::Duration};

/// The histograms' upper bounds in seconds, each about four to ten times the previous one; a wait may exceed the last.
const BUCKETS: [f64; 8] = [0.001, 0.004, 0.015, 0.06, 0.25, 1.0, 10.0, 60.0];

/// The counter of answered requests. A request counts when the head of its answer is sent, because a stream of events may go
/// on for hours.
const HTTP_REQUESTS: &str = "oversell_http_requests_total";

/// The kinds of `oversell_errors_total`, in the order of [`error_kind_index`].
const ERROR_KINDS: [&str; 5] = ["not_had", "unavailable", "unknown", "no_product", "internal"];

/// The gauges of the stream's orders, of all instances, each with its help text, in the order of the fields of [`Backlog`].
const ORDER_GAUGES: [(&str, &str); 3] = [
    ("oversell_order_stream_lag", "Claimed orders that no consumer has had yet, of all instances"),
    ("oversell_order_stream_pending", "Claimed orders that a consumer has, or had when it died"),
    ("oversell_order_stream_dead", "Claimed orders that could not be written"),
];

/// The stores, in the order of [`StockLevels`].
const STORES: [&str; 2] = ["mysql", "redis"];
/// The gauge of product 1's pieces in each store.
const STOCK_GAUGE: &str = "oversell_stock_pieces";
/// The gauges of product 1's pieces in each store when this instance first saw them, and of those that its resets have put there.
const START_GAUGE: &str = "oversell_stock_at_start_pieces";
const PUT_GAUGE: &str = "oversell_stock_put_pieces";
/// The counter of the sold pieces of product 1, by whatever strategy: what can be compared with its stock.
const PRODUCT_SOLD_COUNTER: &str = "oversell_product_sold_total";
/// The counter of the pieces that each strategy has sold in this instance.
const SOLD_COUNTER: &str = "oversell_sold_total";

/// All metrics of an instance, and what renders them.
pub(super) struct Metrics {
    recorder: PrometheusRecorder,
    strategies: HashMap<&'static str, OnceLock<StrategyMetrics>>,
    /// Kept, since each request counts in one.
    requests: RwLock<HashMap<(&'static str, StatusCode), Counter>>,
    took: Histogram,
    /// Product 1's pieces in each store when this instance first saw them.
    at_start: [OnceLock<i64>; 2],
    /// Follows the books, which know what product 1 has sold.
    pub(super) product_sold: Counter,
    process: Collector,
    handle: PrometheusHandle,
}

pub(super) struct StrategyMetrics {
    pub(super) waiters: Gauge,
    acquisitions: Counter,
    wait: Histogram,
    hold: Histogram,
    sold: Counter,
    sold_out: Counter,
    retries: Counter,
    lost: Counter,
    fenced: Counter,
    errors: [Counter; ERROR_KINDS.len()],
}

impl Metrics {
    /// Describes all metrics, and makes those that belong to no strategy.
    pub(super) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let recorder = builder.set_buckets(&BUCKETS).unwrap_or_default().build_recorder();
        let process = Collector::default();
        let (took, product_sold) = with_local_recorder(&recorder, || {
            const BUILD: &str = "oversell_build_info";
            const TOOK: &str = "oversell_http_request_duration_seconds";
            describe_gauge!(BUILD, "1; its labels say what runs");
            let (version, commit) = (env!("CARGO_PKG_VERSION"), COMMIT);
            gauge!(BUILD, "version" => version, "commit" => commit).set(1.0);
            describe_counter!(HTTP_REQUESTS, "Answered requests, by method and status");
            describe_histogram!(TOOK, Unit::Seconds, "Until the head of an answer");
            process.describe();
            for (name, says) in ORDER_GAUGES {
                describe_gauge!(name, says);
            }
            describe_gauge!(STOCK_GAUGE, "Pieces of product 1 that are left in each store, of all instances");
            describe_gauge!(START_GAUGE, "Pieces of product 1 in each store when this instance first saw them");
            describe_gauge!(PUT_GAUGE, "Pieces of product 1 that resets by this instance have put, less those that they found");
            describe_counter!(PRODUCT_SOLD_COUNTER, "Pieces of product 1 sold");
            let product_sold = counter!(PRODUCT_SOLD_COUNTER, "product" => "1");
            product_sold.increment(0);
            // An increase is counted from what was there before the first sale.
            describe_counter!(SOLD_COUNTER, "Pieces sold");
            for strategy in stock::ALL.iter() {
                counter!(SOLD_COUNTER, "strategy" => strategy.slug).increment(0);
            }
            (histogram!(TOOK), product_sold)
        });
        Self {
            strategies: stock::ALL.iter().map(|strategy| (strategy.slug, OnceLock::new())).collect(),
            requests: RwLock::default(),
            took,
            at_start: Default::default(),
            product_sold,
            process,
            handle: recorder.handle(),
            recorder,
        }
    }

    /// The metrics of a strategy, made when they are first asked for.
    pub(super) fn of_strategy(&self, strategy: &Strategy) -> &StrategyMetrics {
        self.strategies[strategy.slug].get_or_init(|| with_local_recorder(&self.recorder, || StrategyMetrics::new(strategy)))
    }

    /// Counts an answer by method and status, and records how long its head took. Unusual methods count as `other`.
    pub(super) fn record_answer(&self, method: &Method, status: StatusCode, took: Duration) {
        self.took.record(took);
        // Clients can invent methods; each would be a series.
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::DELETE => "DELETE",
            Method::HEAD => "HEAD",
            _ => "other",
        };
        let key = (method, status);
        if let Some(counter) = self.requests.read().get(&key) {
            return counter.increment(1);
        }
        let status = status.as_u16().to_string();
        let counter = with_local_recorder(&self.recorder, || counter!(HTTP_REQUESTS, "method" => method, "status" => status));
        counter.increment(1);
        self.requests.write().insert(key, counter);
    }

    /// Sets the gauges of orders and stock; unknown values are NaN.
    pub(super) fn set_gauges(&self, backlog: Option<Backlog>, levels: Option<StockLevels>, put: [i64; 2]) {
        let seen = backlog.map_or([f64::NAN; ORDER_GAUGES.len()], |Backlog { lag, pending, dead }| {
            [lag, pending, dead].map(|orders| orders as f64)
        });
        let left = self.note_levels(levels);
        with_local_recorder(&self.recorder, || {
            for ((name, _), orders) in ORDER_GAUGES.into_iter().zip(seen) {
                gauge!(name).set(orders);
            }
            for ((store, left), put) in STORES.into_iter().zip(left).zip(put) {
                gauge!(STOCK_GAUGE, "store" => store).set(left.map_or(f64::NAN, |pieces| pieces as f64));
                gauge!(PUT_GAUGE, "store" => store).set(put as f64);
            }
        });
    }

    /// Whether the pieces that each store had at the start are known.
    pub(super) fn knows_start(&self) -> bool {
        self.at_start.iter().all(|pieces| pieces.get().is_some())
    }

    /// The pieces that are left in each store; the first time they count as those of the start.
    pub(super) fn note_levels(&self, levels: Option<StockLevels>) -> [Option<i64>; 2] {
        let (mysql, redis) = levels.map_or((None, None), |levels| (levels.mysql, levels.redis));
        let left = [mysql.map(|row| row.count), redis.and_then(|key| key.count)];
        for ((at_start, left), store) in self.at_start.iter().zip(left).zip(STORES) {
            if let Some(left) = left.filter(|left| at_start.set(*left).is_ok()) {
                with_local_recorder(&self.recorder, || gauge!(START_GAUGE, "store" => store).set(left as f64));
            }
        }
        left
    }

    /// All metrics in the text format of Prometheus.
    pub(super) fn render(&self) -> String {
        with_local_recorder(&self.recorder, || self.process.collect());
        self.handle.render()
    }

    /// Moves what was recorded into the buckets. Called periodically, so that samples do not pile up.
    pub(super) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

impl StrategyMetrics {
    fn new(strategy: &Strategy) -> Self {
        const WAITERS: &str = "oversell_waiters";
        const ERRORS: &str = "oversell_errors_total";
        let slug = strategy.slug;
        let counter = |name: &'static str, says: &'static str| {
            describe_counter!(name, says);
            counter!(name, "strategy" => slug)
        };
        let seconds = |name: &'static str, says: &'static str| {
            describe_histogram!(name, Unit::Seconds, says);
            histogram!(name, "strategy" => slug)
        };
        describe_gauge!(WAITERS, "Requests that are not yet inside the critical section");
        describe_counter!(ERRORS, "Requests that failed, by kind");
        Self {
            waiters: gauge!(WAITERS, "strategy" => slug),
            acquisitions: counter("oversell_acquisitions_total", "Requests that got inside the critical section"),
            wait: seconds("oversell_wait_seconds", "How long it took to get inside"),
            hold: seconds("oversell_hold_seconds", "From getting inside to the end of the request"),
            sold: counter!(SOLD_COUNTER, "strategy" => slug),
            sold_out: counter("oversell_sold_out_total", "Requests that found none left"),
            retries: counter("oversell_retries_total", "Attempts that lost a race and were repeated"),
            lost: counter("oversell_lost_leases_total", "Locks that were lost before the write, or before the unlock"),
            fenced: counter("oversell_refused_fences_total", "Writes that the row refused for their old fencing token"),
            errors: ERROR_KINDS.map(|kind| counter!(ERRORS, "strategy" => slug, "kind" => kind)),
        }
    }

    /// Counts the result of a job that ends now, and records its wait and its hold if it has entered.
    pub(super) fn record_job(&self, job: &Job, result: &Result<Deduction, Error>) {
        if job.observation.has_entered() {
            self.acquisitions.increment(1);
            self.wait.record(job.observation.waited());
            self.hold.record(job.observation.since_entered());
        }
        match result {
            Ok(deducted) => {
                self.sold.increment(1);
                self.retries.increment(deducted.retries.into());
                self.lost.increment((deducted.lock == Some(LockState::Lost)).into());
            }
            Err(Error::SoldOut) => self.sold_out.increment(1),
            Err(Error::Lost(_)) => self.lost.increment(1),
            Err(Error::Fenced { .. }) => self.fenced.increment(1),
            Err(error) => self.errors[error_kind_index(error)].increment(1),
        }
    }
}

/// The index in [`ERROR_KINDS`] of this error's kind; of any other kind it is `internal`.
fn error_kind_index(error: &Error) -> usize {
    match error {
        Error::Timeout { .. } => 0,
        Error::Unavailable { .. } | Error::Refuses { .. } | Error::NoStock(_) | Error::WrongType => 1,
        Error::Unknown { .. } => 2,
        Error::NoProduct(_) => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stock_admin::RedisStock;

    /// The most series per instance, besides the counters of sold pieces.
    const MOST: usize = 150;

    fn series(text: &str) -> usize {
        text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count()
    }

    /// Every series of the Grafana dashboard exists.
    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let metrics = Metrics::new();
        metrics.record_answer(&Method::GET, StatusCode::OK, Duration::ZERO);
        metrics.of_strategy(&stock::ALL[0]);
        let left = Some(RedisStock { key: "stock".into(), count: Some(7) });
        metrics.set_gauges(None, Some(StockLevels { mysql: None, redis: left, missing: Vec::new() }), [0; 2]);
        let text = metrics.render();
        let has = |name: &str| {
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            text.contains(&format!("# TYPE {family} "))
        };
        let dashboard = include_str!("../../observe/dashboards/course.json");
        let asked: Vec<_> = dashboard
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("oversell_") || word.starts_with("process_"))
            .collect();
        assert!(asked.len() > 15, "{asked:?}");
        for name in asked {
            assert!(has(name), "{name}");
        }
        assert!(!has("oversell_made_up_total"), "the twin");
    }

    #[test]
    fn only_used_strategies_have_series() {
        let metrics = Metrics::new();
        for status in [StatusCode::OK, StatusCode::OK, StatusCode::CONFLICT] {
            metrics.record_answer(&Method::GET, status, Duration::from_millis(2));
        }
        metrics.record_answer(&Method::from_bytes(b"MADEUP").expect("a method"), StatusCode::METHOD_NOT_ALLOWED, Duration::ZERO);
        for strategy in &stock::ALL[..3] {
            metrics.of_strategy(strategy);
        }
        metrics.set_gauges(None, None, [0; 2]);
        let text = metrics.render();
        for line in [
            r#"oversell_stock_pieces{store="mysql"} NaN"#,
            r#"oversell_sold_total{strategy="none"} 0"#,
            r#"oversell_http_requests_total{method="GET",status="200"} 2"#,
            r#"oversell_http_requests_total{method="GET",status="409"} 1"#,
            r#"oversell_http_requests_total{method="other",status="405"} 1"#,
            "oversell_http_request_duration_seconds_count 4",
            "oversell_build_info{version=",
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
            "process_open_fds ",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let few = series(&text);
        assert!(few < MOST + stock::ALL.len(), "{few} series");
        // The names are those of the registry, and each strategy asked for has its own.
        for strategy in stock::ALL.iter() {
            metrics.of_strategy(strategy).sold.increment(0);
        }
        let all = series(&metrics.render());
        assert!(all > few && all < 37 * stock::ALL.len() + MOST, "{all} series");
    }
}
