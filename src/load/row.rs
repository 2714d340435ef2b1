//! One run in figures: what a table, a file and the page show of it.

use super::{
    engine::Ended,
    lanes::Lanes,
    rate::Rate,
    run::Plan,
    stats::Stats,
    verdict::{Shelf, Verdict, expected, judge, oversold},
};
use crate::stock::{Promise, Store, Strategy};
use serde::Serialize;
use std::collections::BTreeMap;

/// The target that is one instance; every other name stands for several.
pub const ONE: &str = "one";
/// The target that is nginx in front of three instances.
pub const THREE: &str = "three";
/// How many that are.
pub(super) const INSTANCES: u64 = 3;

/// What one run came to. In JSON the columns of the Aggregate Report ([`Stats`]) stand beside the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The strategy's slug.
    pub strategy: &'static str,
    /// `one` instance or `three` behind nginx.
    pub target: String,
    /// Connections.
    pub threads: usize,
    /// Requests of each connection.
    pub loops: usize,
    /// How long the run took, ms.
    pub elapsed_ms: u64,
    /// The columns of JMeter's Aggregate Report.
    #[serde(flatten)]
    pub stats: Stats,
    /// Where the pieces are counted.
    pub store: Store,
    /// Pieces before.
    pub before: i64,
    /// Pieces after.
    pub after: i64,
    /// Answers that said success.
    pub sold: u64,
    /// Answers that said that nothing is left.
    pub sold_out: u64,
    /// Requests that failed and changed nothing.
    pub errors: u64,
    /// Requests whose effect cannot be known.
    pub unknown: u64,
    /// `sold − (before − after)`.
    pub oversold: i64,
    /// Pieces sold per second.
    pub sold_per_sec: f64,
    /// How often the strategy tried anew; absent where the answers do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// The same for each piece sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_per_sold: Option<f64>,
    /// The mean wait for the lock, ms, as the instances measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_mean_ms: Option<f64>,
    /// Half of them waited at most this, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_p50_ms: Option<u64>,
    /// 99 % waited at most this, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_p99_ms: Option<u64>,
    /// The longest of these, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_max_ms: Option<u64>,
    /// The most who were inside the critical section at once; absent where the strategy has none, or the answers do not
    /// say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_inside: Option<u64>,
    /// Those who were inside, to be drawn; of many, a sample. Only where the plan asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
    /// Answers whose unlock found that the lock was no longer theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_lost: Option<u64>,
    /// Requests that were due at the rate asked for and were not sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub behind: u64,
    /// What became of the stock.
    pub verdict: Verdict,
    /// What the strategy promises.
    pub promise: Promise,
    /// The verdict that the promise comes to on this target.
    pub expected: Verdict,
    /// Whether the verdict is the expected one, and no request failed: also that an unsafe strategy did show its fault.
    pub kept: bool,
    /// Why the verdict says less than it might, and what is to be known besides.
    pub notes: Vec<String>,
    /// What it sells in a second, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Whether it came so near to the ceiling of its target that the generator bounds it, not the strategy.
    pub bounded_by_generator: bool,
    /// Answers by instance.
    pub instances: BTreeMap<String, u64>,
    /// Why requests failed, and how many for each reason.
    pub reasons: BTreeMap<String, u64>,
}

impl Row {
    pub(super) fn new(
        plan: &Plan,
        strategy: &Strategy,
        shelf: Shelf,
        ended: &Ended,
        cancelled: bool,
    ) -> Self {
        let (counts, told) = (ended.all.counts(), ended.counted.told());
        let instances = ended.all.instances().clone();
        let mut notes: Vec<_> = absent(plan, &instances).into_iter().collect();
        if !cancelled && plan.timed.is_none() && counts.samples() != plan.planned() {
            notes.push(format!(
                "{} of {} requests were sent",
                counts.samples(),
                plan.planned()
            ));
        }
        let whole = if notes.is_empty() {
            Verdict::Exact
        } else {
            Verdict::Errors
        };
        let verdict = judge(shelf, counts).max(whole);
        let expected = expected(strategy.promise, plan.target == ONE);
        let waits = ended.counted.waits();
        // The histogram gives the end of its bucket, which lies beyond the longest.
        let waited = |quantile| {
            (!waits.is_empty()).then(|| waits.value_at_quantile(quantile).min(told.longest_ms))
        };
        let said = |value: f64| (told.answers > 0).then_some((value * 1000.0).round() / 1000.0);
        Self {
            strategy: strategy.slug,
            target: plan.target.clone(),
            threads: plan.threads,
            loops: plan.loops,
            elapsed_ms: u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX),
            stats: ended.stats.clone(),
            store: strategy.store,
            before: shelf.before,
            after: shelf.after,
            sold: counts.sold,
            sold_out: counts.sold_out,
            errors: counts.refused,
            unknown: counts.unknown,
            oversold: oversold(shelf, counts),
            sold_per_sec: (ended.counted.counts().sold as f64
                / ended.elapsed.as_secs_f64().max(1e-9))
            .round(),
            retries: (told.answers > 0).then_some(told.retries),
            retries_per_sold: said(told.retries as f64 / ended.counted.counts().sold.max(1) as f64),
            waited_mean_ms: said(told.waited_ms as f64 / told.answers as f64),
            waited_p50_ms: waited(0.5),
            waited_p99_ms: waited(0.99),
            waited_max_ms: (told.answers > 0).then_some(told.longest_ms),
            most_inside: ended.most_inside,
            lanes: ended.lanes.clone(),
            lock_lost: (told.answers > 0).then_some(told.lost),
            behind: ended.behind,
            verdict,
            promise: strategy.promise,
            expected,
            kept: verdict == expected && counts.failed() == 0 && notes.is_empty(),
            notes,
            rate: None,
            bounded_by_generator: false,
            instances,
            reasons: ended.all.reasons().clone(),
        }
    }

    /// Pieces that left the shelf.
    #[must_use]
    pub fn gone(&self) -> i64 {
        self.before - self.after
    }

    /// The promise, as `GET /strategies` words it.
    #[must_use]
    pub const fn promise_word(&self) -> &'static str {
        match self.promise {
            Promise::Unsafe => "unsafe",
            Promise::OneProcess => "one-process",
            Promise::Lease => "lease",
            Promise::Safe => "safe",
        }
    }

    /// Why requests failed, the most frequent reason first; `None` where none did.
    #[must_use]
    pub fn reasons_line(&self) -> Option<String> {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let reasons: Vec<_> = reasons
            .into_iter()
            .map(|(why, n)| format!("{n}× {why}"))
            .collect();
        (!reasons.is_empty()).then(|| {
            format!(
                "{}, {} connections: {}",
                self.target,
                self.threads,
                reasons.join("; ")
            )
        })
    }

    /// Why the promise counts as broken, in one line; `None` where it was kept.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        if self.kept {
            let oversold =
                |rate: &&Rate| rate.verdict == Verdict::Oversold && self.expected == Verdict::Exact;
            let (strategy, target) = (self.strategy, &self.target);
            return self
                .rate
                .as_ref()
                .filter(oversold)
                .map(|_| format!("{strategy} on {target} oversold while its rate was measured"));
        }
        let Self {
            strategy,
            target,
            sold,
            oversold,
            errors,
            unknown,
            ..
        } = self;
        let gone = self.gone();
        let what = match (self.expected, self.verdict) {
            (Verdict::Oversold, Verdict::Exact) => {
                format!("did not show its fault: sold {sold}, {gone} gone")
            }
            (Verdict::Exact, Verdict::Oversold) => {
                format!("oversold {oversold}: sold {sold}, {gone} gone")
            }
            _ => format!(
                "{errors} errors, {unknown} unknown, {} sold out; sold {sold}, {gone} gone",
                self.sold_out
            ),
        };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        Some(format!("{strategy} on {target}: {what}{notes}"))
    }
}

/// Which instances did not answer, in words: `one` is one, `three` are three, unless fewer were asked.
fn absent(plan: &Plan, answered: &BTreeMap<String, u64>) -> Option<String> {
    let asked = match plan.target.as_str() {
        ONE => 1,
        _ if plan.timed.is_some() => INSTANCES,
        _ => INSTANCES.min(plan.planned()),
    };
    let names: Vec<_> = answered.keys().map(String::as_str).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    let answered = answered.len() as u64;
    let wrong = if plan.target == ONE {
        answered != 1
    } else {
        answered < asked
    };
    wrong.then(|| {
        format!(
            "target {} is {asked} instance(s), and {answered} answered: {names}",
            plan.target
        )
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
