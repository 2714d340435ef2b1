//! What a run has seen: one outcome and one latency for each request.
//!
//! Pure: it knows neither clock nor network. Three things are kept apart, as Jepsen does: a request that took a piece,
//! one that surely did not, and one of which nobody can tell.
//!
//! Next: `verdict.rs`, which judges it.

use hdrhistogram::Histogram;
use std::{collections::BTreeMap, time::Duration};

/// The longest latency that is told apart from longer ones, in µs: 5 minutes.
const LONGEST_US: u64 = 300_000_000;
/// Digits that a latency keeps.
const DIGITS: u8 = 3;
/// Different reasons that are kept; the others are counted together.
const REASONS: usize = 16;

/// What one request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was told that it has a piece.
    Sold,
    /// It was told that there is none left.
    SoldOut,
    /// It failed and changed nothing: refused, or never sent.
    Refused(String),
    /// Nobody can tell: it was sent, and no answer came that says what became of it.
    Unknown(String),
}

/// How many requests came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answers that said success.
    pub sold: u64,
    /// Answers that said that nothing is left.
    pub sold_out: u64,
    /// Requests that failed and changed nothing.
    pub refused: u64,
    /// Requests whose effect cannot be known.
    pub unknown: u64,
}

impl Counts {
    /// All requests.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.sold + self.sold_out + self.refused + self.unknown
    }

    /// Requests that did not get what a shop owes them, an answer. Sold out is one.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.refused + self.unknown
    }

    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Sold => self.sold += 1,
            Outcome::SoldOut => self.sold_out += 1,
            Outcome::Refused(_) => self.refused += 1,
            Outcome::Unknown(_) => self.unknown += 1,
        }
    }
}

impl<'a> FromIterator<&'a Outcome> for Counts {
    fn from_iter<I: IntoIterator<Item = &'a Outcome>>(outcomes: I) -> Self {
        let mut counts = Self::default();
        outcomes.into_iter().for_each(|outcome| counts.add(outcome));
        counts
    }
}

/// Everything that a run has seen so far.
#[derive(Debug, Clone)]
pub struct History {
    counts: Counts,
    latencies: Histogram<u64>,
    latency_sum_us: u64,
    instances: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            latencies: Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the bounds are constants"),
            latency_sum_us: 0,
            instances: BTreeMap::new(),
            reasons: BTreeMap::new(),
        }
    }
}

impl History {
    /// Adds one request: what it came to, how long that took, and which instance answered.
    pub fn record(&mut self, outcome: Outcome, latency: Duration, instance: Option<&str>) {
        self.counts.add(&outcome);
        let us = u64::try_from(latency.as_micros()).unwrap_or(LONGEST_US);
        self.latencies.saturating_record(us);
        self.latency_sum_us += us;
        if let Some(name) = instance {
            count(&mut self.instances, name);
        }
        if let Outcome::Refused(why) | Outcome::Unknown(why) = outcome {
            let known = self.reasons.len() < REASONS || self.reasons.contains_key(&why);
            count(&mut self.reasons, if known { &why } else { "other reasons" });
        }
    }

    /// Adds requests that were given up before any answer came: they have an outcome, but no latency.
    pub fn abandon(&mut self, requests: u64, why: &str) {
        self.counts.unknown += requests;
        if requests > 0 {
            *self.reasons.entry(why.to_owned()).or_default() += requests;
        }
    }

    /// How many requests came to what.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The latencies, in µs.
    #[must_use]
    pub fn latencies(&self) -> &Histogram<u64> {
        &self.latencies
    }

    /// The sum of all latencies, in µs: the histogram rounds each, this does not.
    #[must_use]
    pub fn latency_sum_us(&self) -> u64 {
        self.latency_sum_us
    }

    /// Answers by instance.
    #[must_use]
    pub fn instances(&self) -> &BTreeMap<String, u64> {
        &self.instances
    }

    /// Why requests failed, and how many for each reason.
    #[must_use]
    pub fn reasons(&self) -> &BTreeMap<String, u64> {
        &self.reasons
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(n) => *n += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_do_not_grow_without_bound() {
        let mut history = History::default();
        for i in 0..1000 {
            history.record(Outcome::Refused(format!("reason {i}")), Duration::from_millis(1), None);
        }
        assert_eq!(history.reasons().len(), REASONS + 1);
        assert_eq!(history.reasons().values().sum::<u64>(), 1000);
    }

    #[test]
    fn an_abandoned_request_counts_as_unknown_and_has_no_latency() {
        let mut history = History::default();
        history.record(Outcome::Sold, Duration::from_millis(2), Some("8000"));
        history.abandon(3, "stopped");
        assert_eq!(history.counts(), Counts { sold: 1, unknown: 3, ..Counts::default() });
        assert_eq!(history.latencies().len(), 1);
        assert_eq!(history.reasons()["stopped"], 3);
    }

    #[test]
    fn sold_out_is_an_answer_and_no_failure() {
        let counts: Counts = [Outcome::Sold, Outcome::SoldOut, Outcome::Unknown("cut".into())].iter().collect();
        assert_eq!((counts.samples(), counts.failed()), (3, 1));
    }
}
