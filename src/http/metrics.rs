//! The metrics of `/metrics`: each is made once, so that a request only adds to a number.

use crate::{
    error::Error,
    seckill::stream::Backlog,
    section::{Deducted, Job, LockState},
    stock::{self, Strategy},
};
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram, with_local_recorder,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Upper bounds in seconds; beyond 60 nothing waits or holds.
const BUCKETS: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
];

/// The kinds of `oversell_errors_total`, in the order of [`kind`].
const KINDS: [&str; 5] = [
    "not_had",
    "unavailable",
    "unknown",
    "no_product",
    "internal",
];

/// The orders of the stream, of all instances, as [`Backlog`] has them.
const ORDERS: [(&str, &str); 3] = [
    (
        "oversell_order_stream_lag",
        "Claimed orders that no consumer has had yet, of all instances",
    ),
    (
        "oversell_order_stream_pending",
        "Claimed orders that a consumer has, or had when it died",
    ),
    (
        "oversell_order_stream_dead",
        "Claimed orders that could not be written",
    ),
];

/// The metrics of every strategy.
pub(super) struct Metrics {
    strategies: Vec<StrategyMetrics>,
    orders: [Gauge; ORDERS.len()],
    handle: PrometheusHandle,
}

/// The metrics of one strategy.
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
    errors: [Counter; KINDS.len()],
}

impl Metrics {
    pub(super) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let recorder = builder
            .set_buckets(&BUCKETS)
            .unwrap_or_default()
            .build_recorder();
        let (strategies, orders) = with_local_recorder(&recorder, || {
            let strategies = stock::ALL.iter().map(StrategyMetrics::new);
            let orders = ORDERS.map(|(name, says)| {
                describe_gauge!(name, says);
                gauge!(name)
            });
            (strategies.collect(), orders)
        });
        Self {
            strategies,
            orders,
            handle: recorder.handle(),
        }
    }

    /// The metrics of the strategy at this place in [`stock::ALL`].
    pub(super) fn of(&self, place: usize) -> &StrategyMetrics {
        &self.strategies[place]
    }

    /// Notes how many orders wait in the stream; not a number where that is not known.
    pub(super) fn note(&self, backlog: Option<Backlog>) {
        let seen = backlog.map_or(
            [f64::NAN; ORDERS.len()],
            |Backlog { lag, pending, dead }| [lag, pending, dead].map(|orders| orders as f64),
        );
        for (gauge, orders) in self.orders.iter().zip(seen) {
            gauge.set(orders);
        }
    }

    /// Everything in Prometheus' text format.
    pub(super) fn render(&self) -> String {
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
        describe_gauge!(
            WAITERS,
            "Requests that are not yet inside the critical section"
        );
        describe_counter!(ERRORS, "Requests that failed, by kind");
        Self {
            waiters: gauge!(WAITERS, "strategy" => slug),
            acquisitions: counter(
                "oversell_acquisitions_total",
                "Requests that got inside the critical section",
            ),
            wait: seconds("oversell_wait_seconds", "How long it took to get inside"),
            hold: seconds(
                "oversell_hold_seconds",
                "From getting inside to the end of the request",
            ),
            sold: counter("oversell_sold_total", "Pieces sold"),
            sold_out: counter("oversell_sold_out_total", "Requests that found none left"),
            retries: counter(
                "oversell_retries_total",
                "Attempts that lost a race and were repeated",
            ),
            lost: counter(
                "oversell_lost_leases_total",
                "Locks that were lost before the write, or before the unlock",
            ),
            fenced: counter(
                "oversell_refused_fences_total",
                "Writes that the row refused for their old fencing token",
            ),
            errors: KINDS.map(|kind| counter!(ERRORS, "strategy" => slug, "kind" => kind)),
        }
    }

    /// Counts what became of a job.
    pub(super) fn count(&self, job: &Job, result: &Result<Deducted, Error>) {
        if job.seen.has_entered() {
            self.acquisitions.increment(1);
            self.wait.record(job.seen.waited());
            self.hold.record(job.seen.held());
        }
        match result {
            Ok(deducted) => {
                self.sold.increment(1);
                self.retries.increment(deducted.retries.into());
                self.lost
                    .increment((deducted.lock == Some(LockState::Lost)).into());
            }
            Err(Error::SoldOut) => self.sold_out.increment(1),
            Err(Error::Lost(_)) => self.lost.increment(1),
            Err(Error::Fenced { .. }) => self.fenced.increment(1),
            Err(error) => self.errors[kind(error)].increment(1),
        }
    }
}

fn kind(error: &Error) -> usize {
    match error {
        Error::NotHad { .. } => 0,
        Error::Unavailable { .. } | Error::NoStock(_) | Error::WrongType => 1,
        Error::Unknown { .. } => 2,
        Error::NoProduct(_) => 3,
        _ => 4,
    }
}
