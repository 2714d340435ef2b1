//! The history of a run: one outcome and one latency for each request.
//!
//! The history knows neither clock nor network. Like Jepsen it keeps three outcomes apart: took a piece, surely took none,
//! unknown.
//!
//! Next: `verdict.rs`, which judges it.

use super::inside::Stay;
use hdrhistogram::Histogram;
use oversell_lab::spread::rounded;
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

/// Longer latencies count as this one, an hour, in µs: no run lasts an hour.
const MAX_LATENCY_US: u64 = 3_600_000_000;
/// Significant digits of a latency: an error of a thousandth.
const LATENCY_DIGITS: u8 = 3;
/// How many different reasons are kept; later ones are counted together.
const MAX_REASONS: usize = 16;

/// The outcome of one request: sold, sold out, refused, or unknown; the last two with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The answer says that a piece was sold.
    Sold,
    /// The answer says that no piece is left.
    SoldOut,
    /// The request failed and changed nothing: it was refused, or never sent.
    Refused(String),
    /// The request was sent, and no answer tells whether it took a piece.
    Unknown(String),
}

/// The number of requests for each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OutcomeCounts {
    /// Answers that said success.
    pub sold: u64,
    /// Answers that said that nothing is left.
    pub sold_out: u64,
    /// Requests that failed and changed nothing.
    pub errors: u64,
    /// Requests whose effect cannot be known.
    pub unknown: u64,
}

impl OutcomeCounts {
    /// All requests, whatever their outcome.
    pub fn samples(&self) -> u64 {
        self.sold + self.sold_out + self.failed()
    }

    /// Requests that got no valid answer. "Sold out" is a valid answer.
    pub fn failed(&self) -> u64 {
        self.errors + self.unknown
    }
}

/// The further fields of an answer in JSON; an answer in text has none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerDetails {
    /// How often the strategy tried again.
    pub retries: Option<u64>,
    /// How long the request waited for the lock, ms.
    pub waited_ms: Option<u64>,
    /// Whether the lock was lost before the unlock.
    pub lost: bool,
    /// When the request was inside the critical section.
    pub inside: Option<Stay>,
    /// When each try was under way, for a strategy without a critical section; the last try succeeded.
    pub tries: Vec<Stay>,
}

/// The retries and waits of a run, as far as its answers report them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Contention {
    /// How often the strategy tried again.
    pub retries: u64,
    /// Retries for each piece sold.
    pub retries_per_sold: f64,
    /// The mean wait for the lock, ms, as the instances measure it.
    pub waited_mean_ms: f64,
    /// Half of the requests waited at most this, ms.
    pub waited_p50_ms: u64,
    /// 99 % of the requests waited at most this, ms.
    pub waited_p99_ms: u64,
    /// The longest wait, ms; above 2 s within a thousandth.
    pub waited_max_ms: u64,
    /// Answers that say that the lock was lost before the unlock.
    pub lock_lost: u64,
}

/// The outcomes, latencies and waits of a run so far.
#[derive(Debug, Clone)]
pub struct History {
    pub counts: OutcomeCounts,
    /// The latencies, in µs.
    pub latencies: Histogram<u32>,
    /// The exact sum of all latencies, in µs; the histogram rounds each.
    pub latency_sum_us: u64,
    /// How often the strategies tried again, as far as the answers say.
    pub retries: u64,
    /// How long the requests waited for their locks, in ms.
    waits: Histogram<u32>,
    /// Answers whose unlock found the lock lost.
    lock_lost: u64,
    /// Answers by instance.
    pub instances: BTreeMap<String, u64>,
    /// Why requests failed, and how many for each reason.
    pub reasons: BTreeMap<String, u64>,
}

impl Default for History {
    fn default() -> Self {
        let histogram = || Histogram::new(LATENCY_DIGITS).expect("the digits are a constant");
        Self {
            counts: OutcomeCounts::default(),
            latencies: histogram(),
            latency_sum_us: 0,
            retries: 0,
            waits: histogram(),
            lock_lost: 0,
            instances: BTreeMap::new(),
            reasons: BTreeMap::new(),
        }
    }
}

impl History {
    /// Adds one request, with the instance that answered. Retries and wait count only if the answer has both.
    pub fn record(&mut self, outcome: &Outcome, latency: Duration, instance: Option<&str>, said: &AnswerDetails) {
        match outcome {
            Outcome::Sold => self.counts.sold += 1,
            Outcome::SoldOut => self.counts.sold_out += 1,
            Outcome::Refused(why) => {
                self.counts.errors += 1;
                self.count_reason(why, 1);
            }
            Outcome::Unknown(why) => self.abandon(1, why),
        }
        let us = u64::try_from(latency.as_micros()).unwrap_or(MAX_LATENCY_US);
        self.latency_sum_us += us.min(MAX_LATENCY_US);
        record_value(&mut self.latencies, us);
        self.lock_lost += u64::from(said.lost);
        if let Some((retries, waited_ms)) = said.retries.zip(said.waited_ms) {
            self.retries += retries;
            record_value(&mut self.waits, waited_ms);
        }
        if let Some(name) = instance {
            *self.instances.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Adds requests that were given up before an answer came: their effect is unknown, and they have no latency.
    pub fn abandon(&mut self, requests: u64, why: &str) {
        self.counts.unknown += requests;
        if requests > 0 {
            self.count_reason(why, requests);
        }
    }

    /// Counts a reason why requests failed; a new one beyond [`MAX_REASONS`] as `other reasons`.
    fn count_reason(&mut self, why: &str, n: u64) {
        let known = self.reasons.len() < MAX_REASONS || self.reasons.contains_key(why);
        let why = if known { why } else { "other reasons" };
        *self.reasons.entry(why.to_owned()).or_default() += n;
    }

    /// Retries and waits; `None` if no answer reported them.
    pub fn contention(&self) -> Option<Contention> {
        let waits = &self.waits;
        (!waits.is_empty()).then(|| Contention {
            retries: self.retries,
            retries_per_sold: rounded(self.retries as f64 / self.counts.sold.max(1) as f64),
            waited_mean_ms: rounded(waits.mean()),
            waited_p50_ms: waits.value_at_quantile(0.5),
            waited_p99_ms: waits.value_at_quantile(0.99),
            waited_max_ms: waits.max(),
            lock_lost: self.lock_lost,
        })
    }
}

/// Records a value; a greater one counts as [`MAX_LATENCY_US`].
fn record_value(to: &mut Histogram<u32>, value: u64) {
    to.record(value.min(MAX_LATENCY_US)).expect("a histogram that grows");
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_micros(700);

    #[test]
    fn reasons_do_not_grow_without_bound() {
        let mut history = History::default();
        for i in 0..1000 {
            let refused = Outcome::Refused(format!("reason {i}"));
            history.record(&refused, LATENCY, None, &AnswerDetails::default());
        }
        assert_eq!(history.reasons.len(), MAX_REASONS + 1);
        assert_eq!(history.reasons.values().sum::<u64>(), 1000);
    }

    #[test]
    fn an_abandoned_request_counts_as_unknown_and_has_no_latency() {
        let mut history = History::default();
        history.record(&Outcome::Sold, LATENCY, Some("8000"), &AnswerDetails::default());
        history.abandon(3, "stopped");
        let wanted = OutcomeCounts { sold: 1, unknown: 3, ..OutcomeCounts::default() };
        assert_eq!(history.counts, wanted);
        assert_eq!(history.latencies.len(), 1);
        assert_eq!(history.reasons["stopped"], 3);
    }

    #[test]
    fn an_answer_without_retries_is_not_one_with_none() {
        let said = |retries, waited_ms| AnswerDetails {
            retries: Some(retries),
            waited_ms: Some(waited_ms),
            lost: retries == 3,
            ..AnswerDetails::default()
        };
        let mut all = History::default();
        for said in [said(3, 40), said(1, 2), AnswerDetails::default()] {
            all.record(&Outcome::Sold, LATENCY, Some("8000"), &said);
        }
        let wanted = Contention {
            retries: 4,
            retries_per_sold: 1.333,
            waited_mean_ms: 21.0,
            waited_p50_ms: 2,
            waited_p99_ms: 40,
            waited_max_ms: 40,
            lock_lost: 1,
        };
        assert_eq!(all.contention(), Some(wanted));
        assert_eq!((all.counts.sold, all.latencies.len(), all.instances["8000"]), (3, 3, 3));
    }
}
