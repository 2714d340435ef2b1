//! One run in figures: what a table, a file and the page show of it.

use super::{
    engine::Ended,
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
    /// What became of the stock.
    pub verdict: Verdict,
    /// What the strategy promises.
    pub promise: Promise,
    /// The verdict that the promise comes to on this target.
    pub expected: Verdict,
    /// Whether the verdict is the expected one: also that an unsafe strategy did show its fault.
    pub kept: bool,
    /// Answers by instance.
    pub instances: BTreeMap<String, u64>,
    /// Why requests failed, and how many for each reason.
    pub reasons: BTreeMap<String, u64>,
}

impl Row {
    pub(super) fn new(plan: &Plan, strategy: &Strategy, shelf: Shelf, ended: &Ended) -> Self {
        let counts = ended.history.counts();
        let verdict = judge(shelf, counts);
        let expected = expected(strategy.promise, plan.target == ONE);
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
            verdict,
            promise: strategy.promise,
            expected,
            kept: verdict == expected,
            instances: ended.history.instances().clone(),
            reasons: ended.history.reasons().clone(),
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
        let reasons: Vec<_> = reasons.into_iter().map(|(why, n)| format!("{n}× {why}")).collect();
        (!reasons.is_empty()).then(|| format!("{}, {} connections: {}", self.target, self.threads, reasons.join("; ")))
    }

    /// Why the promise counts as broken, in one line; `None` where it was kept.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        if self.kept {
            return None;
        }
        let Self { strategy, target, sold, oversold, errors, unknown, .. } = self;
        let gone = self.gone();
        Some(match (self.expected, self.verdict) {
            (Verdict::Oversold, _) => {
                format!("{strategy} on {target} did not show its fault: sold {sold}, {gone} gone")
            }
            (_, Verdict::Oversold) => format!("{strategy} on {target} oversold {oversold}: sold {sold}, {gone} gone"),
            _ => format!(
                "{strategy} on {target}: {errors} errors, {unknown} unknown, {} sold out; sold {sold}, {gone} gone",
                self.sold_out
            ),
        })
    }
}
