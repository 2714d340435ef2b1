//! The columns of JMeter's Aggregate Report, computed from a history.
//!
//! JMeter's labels and the names here: # Samples `samples`, Average `average`, Median `median`, 90% Line `p90_line`,
//! 95% Line `p95_line`, 99% Line `p99_line`, Min `min`, Max `max`, Error % `error_percent`, Throughput `throughput`,
//! Received KB/sec `received_kb_per_sec`, Sent KB/sec `sent_kb_per_sec`. Latencies are in milliseconds, a KB has 1024
//! bytes, and bytes are those on the wire, headers and all.

use super::history::History;
use oversell_lab::spread::rounded;
use serde::Serialize;
use std::time::Duration;

/// One row of the Aggregate Report.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Requests with any outcome.
    pub samples: u64,
    /// Mean latency, ms.
    pub average: f64,
    /// Half of the requests took at most this, ms.
    pub median: f64,
    /// 90 % took at most this, ms.
    pub p90_line: f64,
    /// 95 % took at most this, ms.
    pub p95_line: f64,
    /// 99 % took at most this, ms.
    pub p99_line: f64,
    /// The shortest latency, ms.
    pub min: f64,
    /// The longest latency, ms.
    pub max: f64,
    /// Requests that failed or whose effect is unknown, in percent of all. Sold out is an answer, not an error.
    pub error_percent: f64,
    /// Requests per second, from the first one sent to the last one answered; of a timed load, in the measured time.
    pub throughput: f64,
    /// KiB received per second.
    pub received_kb_per_sec: f64,
    /// KiB sent per second.
    pub sent_kb_per_sec: f64,
}

/// Bytes that a run has sent and received on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    pub received: u64,
    pub sent: u64,
}

impl Stats {
    /// Computes the columns; rates are 0 if `elapsed` is 0.
    pub fn of(history: &History, bytes: Bytes, elapsed: Duration) -> Self {
        let counts = history.counts;
        let latencies = &history.latencies;
        let quantile = |q| ms(latencies.value_at_quantile(q));
        let per_second = |n: f64| {
            if elapsed.is_zero() { 0.0 } else { rounded(n / elapsed.as_secs_f64()) }
        };
        Self {
            samples: counts.samples(),
            average: rounded_mean(history.latency_sum_us as f64 / 1000.0, latencies.len()),
            median: quantile(0.5),
            p90_line: quantile(0.9),
            p95_line: quantile(0.95),
            p99_line: quantile(0.99),
            min: ms(if latencies.is_empty() { 0 } else { latencies.min() }),
            max: ms(latencies.max()),
            error_percent: rounded_mean(100.0 * counts.failed() as f64, counts.samples()),
            throughput: per_second(counts.samples() as f64),
            received_kb_per_sec: per_second(bytes.received as f64 / 1024.0),
            sent_kb_per_sec: per_second(bytes.sent as f64 / 1024.0),
        }
    }
}

/// Microseconds in milliseconds.
fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// `sum / n`, rounded; 0 if `n` is 0.
fn rounded_mean(sum: f64, n: u64) -> f64 {
    if n == 0 { 0.0 } else { rounded(sum / n as f64) }
}

#[cfg(test)]
mod tests {
    use super::{
        super::history::{AnswerDetails, Outcome},
        *,
    };
    use proptest::prelude::*;

    fn history(latencies_us: &[u64]) -> History {
        let mut history = History::default();
        for &us in latencies_us {
            let latency = Duration::from_micros(us);
            history.record(&Outcome::Sold, latency, None, &AnswerDetails::default());
        }
        history
    }

    #[test]
    fn an_empty_history_has_zeros_and_no_division_by_zero() {
        assert_eq!(Stats::of(&History::default(), Bytes::default(), Duration::ZERO), Stats::default());
    }

    #[test]
    fn rates_are_per_second_of_the_run() {
        let bytes = Bytes { received: 4096, sent: 2048 };
        let stats = Stats::of(&history(&[1000, 3000]), bytes, Duration::from_secs(2));
        assert_eq!((stats.samples, stats.average, stats.throughput), (2, 2.0, 1.0));
        assert_eq!((stats.received_kb_per_sec, stats.sent_kb_per_sec), (2.0, 1.0));
    }

    #[test]
    fn sold_out_is_not_an_error() {
        let mut history = history(&[10]);
        for outcome in [Outcome::SoldOut, Outcome::Refused("503".into()), Outcome::Unknown("cut".into())] {
            history.record(&outcome, Duration::from_micros(10), None, &AnswerDetails::default());
        }
        assert_eq!(Stats::of(&history, Bytes::default(), Duration::from_secs(1)).error_percent, 50.0);
    }

    proptest! {
        #[test]
        fn every_line_is_the_latency_of_that_rank(mut us in prop::collection::vec(1u64..200_000_000, 1..400)) {
            let stats = Stats::of(&history(&us), Bytes::default(), Duration::from_secs(1));
            us.sort_unstable();
            let at = |q: f64| {
                let rank = (q * us.len() as f64).ceil() as usize;
                us[rank.max(1) - 1] as f64 / 1000.0
            };
            for (line, wanted) in [
                (stats.median, at(0.5)),
                (stats.p90_line, at(0.9)),
                (stats.p95_line, at(0.95)),
                (stats.p99_line, at(0.99)),
                (stats.min, at(0.0)),
                (stats.max, at(1.0)),
            ] {
                prop_assert!((line - wanted).abs() <= wanted * 0.002 + 0.001, "{line} for {wanted}");
            }
        }
    }
}
