//! What a run has seen: one outcome and one latency for each request.
//!
//! Pure: it knows neither clock nor network. Three things are kept apart, as Jepsen does: a request that took a piece,
//! one that surely did not, and one of which nobody can tell.
//!
//! Next: `verdict.rs`, which judges it.

use super::inside::Stay;
use hdrhistogram::Histogram;
use std::{collections::BTreeMap, time::Duration};

/// The longest latency that is told apart from longer ones, in µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;
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

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.sold += other.sold;
        self.sold_out += other.sold_out;
        self.refused += other.refused;
        self.unknown += other.unknown;
    }
}

/// What an answer in JSON says besides; an answer in text says nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// How often the strategy tried again.
    pub retries: Option<u64>,
    /// How long it waited for the lock, ms.
    pub waited_ms: Option<u64>,
    /// The unlock found that the lock was no longer ours.
    pub lost: bool,
    /// When it was inside the critical section.
    pub inside: Option<Stay>,
    /// Where there is none: when its tries were under way, the last one with success.
    pub tries: Vec<Stay>,
}

/// The sums of what the answers said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Answers that named their retries and their wait.
    pub answers: u64,
    /// Retries of all of them.
    pub retries: u64,
    /// Their waits together, ms.
    pub waited_ms: u64,
    /// The longest of these, ms.
    pub longest_ms: u64,
    /// Answers whose unlock found the lock lost.
    pub lost: u64,
}

/// Everything that a run has seen so far.
#[derive(Debug, Clone)]
pub struct History {
    counts: Counts,
    latencies: Histogram<u32>,
    latency_sum_us: u64,
    waits: Histogram<u32>,
    told: Told,
    instances: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            latencies: Histogram::new(DIGITS).expect("the digits are a constant"),
            waits: Histogram::new(DIGITS).expect("the digits are a constant"),
            latency_sum_us: 0,
            told: Told::default(),
            instances: BTreeMap::new(),
            reasons: BTreeMap::new(),
        }
    }
}

impl History {
    /// Adds one request: what it came to, how long that took, which instance answered and what else it said.
    pub fn record(
        &mut self,
        outcome: Outcome,
        latency: Duration,
        instance: Option<&str>,
        said: Said,
    ) {
        self.counts.add(&outcome);
        let us = u64::try_from(latency.as_micros())
            .unwrap_or(LONGEST_US)
            .min(LONGEST_US);
        self.latencies.record(us).expect("a histogram that grows");
        self.latency_sum_us += us;
        self.told.add(&said);
        if let Some(ms) = said.waited_ms {
            self.waits
                .record(ms.min(LONGEST_US))
                .expect("a histogram that grows");
        }
        if let Some(name) = instance {
            count(&mut self.instances, name, 1);
        }
        if let Outcome::Refused(why) | Outcome::Unknown(why) = outcome {
            self.note(&why, 1);
        }
    }

    /// Adds all that another has seen.
    pub fn merge(&mut self, other: &Self) {
        self.counts += other.counts;
        // Both grow as they must; what they share are the digits, which is all that an addition asks for.
        self.latencies
            .add(&other.latencies)
            .expect("histograms that grow");
        self.waits.add(&other.waits).expect("histograms that grow");
        self.latency_sum_us += other.latency_sum_us;
        self.told.merge(other.told);
        other
            .instances
            .iter()
            .for_each(|(name, n)| count(&mut self.instances, name, *n));
        other.reasons.iter().for_each(|(why, n)| self.note(why, *n));
    }

    fn note(&mut self, why: &str, n: u64) {
        let known = self.reasons.len() < REASONS || self.reasons.contains_key(why);
        count(
            &mut self.reasons,
            if known { why } else { "other reasons" },
            n,
        );
    }

    /// Adds requests that were given up before any answer came: they have an outcome, but no latency.
    pub fn abandon(&mut self, requests: u64, why: &str) {
        self.counts.unknown += requests;
        if requests > 0 {
            self.note(why, requests);
        }
    }

    /// How many requests came to what.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The latencies, in µs.
    #[must_use]
    pub fn latencies(&self) -> &Histogram<u32> {
        &self.latencies
    }

    /// The sum of all latencies, in µs: the histogram rounds each, this does not.
    #[must_use]
    pub fn latency_sum_us(&self) -> u64 {
        self.latency_sum_us
    }

    /// How long the strategies waited for their locks, as far as the answers say, in ms.
    #[must_use]
    pub fn waits(&self) -> &Histogram<u32> {
        &self.waits
    }

    /// What the answers said besides.
    #[must_use]
    pub fn told(&self) -> Told {
        self.told
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

impl Told {
    fn add(&mut self, said: &Said) {
        self.lost += u64::from(said.lost);
        if let Said {
            retries: Some(retries),
            waited_ms: Some(waited_ms),
            ..
        } = *said
        {
            self.merge(Self {
                answers: 1,
                retries,
                waited_ms,
                longest_ms: waited_ms,
                lost: 0,
            });
        }
    }

    fn merge(&mut self, other: Self) {
        self.answers += other.answers;
        self.retries += other.retries;
        self.waited_ms += other.waited_ms;
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        self.lost += other.lost;
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str, more: u64) {
    match counts.get_mut(name) {
        Some(n) => *n += more,
        None => {
            counts.insert(name.to_owned(), more);
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
            history.record(
                Outcome::Refused(format!("reason {i}")),
                Duration::from_millis(1),
                None,
                Said::default(),
            );
        }
        assert_eq!(history.reasons().len(), REASONS + 1);
        assert_eq!(history.reasons().values().sum::<u64>(), 1000);
    }

    #[test]
    fn an_abandoned_request_counts_as_unknown_and_has_no_latency() {
        let mut history = History::default();
        history.record(
            Outcome::Sold,
            Duration::from_millis(2),
            Some("8000"),
            Said::default(),
        );
        history.abandon(3, "stopped");
        assert_eq!(
            history.counts(),
            Counts {
                sold: 1,
                unknown: 3,
                ..Counts::default()
            }
        );
        assert_eq!(history.latencies().len(), 1);
        assert_eq!(history.reasons()["stopped"], 3);
    }

    #[test]
    fn what_several_have_seen_is_added_up_and_an_answer_without_retries_is_not_one_with_none() {
        let said = |retries, waited_ms| Said {
            retries: Some(retries),
            waited_ms: Some(waited_ms),
            lost: retries == 3,
            ..Said::default()
        };
        let seen = |said| {
            let mut history = History::default();
            history.record(
                Outcome::Sold,
                Duration::from_micros(700),
                Some("8000"),
                said,
            );
            history
        };
        let mut all = seen(said(3, 40));
        for one in [said(1, 2), Said::default()] {
            all.merge(&seen(one));
        }
        assert_eq!(
            all.told(),
            Told {
                answers: 2,
                retries: 4,
                waited_ms: 42,
                longest_ms: 40,
                lost: 1
            }
        );
        assert_eq!((all.waits().len(), all.waits().max()), (2, 40));
        assert_eq!(
            (
                all.counts().sold,
                all.latencies().len(),
                all.instances()["8000"]
            ),
            (3, 3, 3)
        );
    }

    #[test]
    fn sold_out_is_an_answer_and_no_failure() {
        let counts: Counts = [
            Outcome::Sold,
            Outcome::SoldOut,
            Outcome::Unknown("cut".into()),
        ]
        .iter()
        .collect();
        assert_eq!((counts.samples(), counts.failed()), (3, 1));
    }
}
