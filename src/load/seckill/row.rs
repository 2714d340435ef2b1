//! One run of orders in figures, and whether it went as its step promises.

use super::run::{Plan, Tally, per_second};
use crate::{
    load::{
        engine::Ended,
        rate::Spread,
        row::{INSTANCES, ONE},
        stats::Stats,
    },
    seckill::{
        Step,
        check::{Report, Verdict},
    },
    stock::Promise,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// What one run came to.
#[derive(Debug, Clone, Serialize)]
pub(in crate::load) struct Row {
    pub(super) strategy: &'static str,
    /// `one` instance or `three` behind nginx.
    pub(super) target: String,
    pub(super) users: u64,
    /// Orders of each user.
    pub(super) repeats: u64,
    #[serde(flatten)]
    pub(super) stats: Stats,
    /// Answers that said success.
    pub(super) ordered: u64,
    /// 库存不足！
    pub(super) sold_out: u64,
    /// 用户已经购买过一次!
    pub(super) already_ordered: u64,
    /// 不允许重复下单
    pub(super) under_way: u64,
    /// Requests that failed and changed nothing.
    pub(super) errors: u64,
    /// Requests whose effect cannot be known.
    pub(super) unknown: u64,
    /// What the checker says of the orders.
    #[serde(flatten)]
    pub(super) report: Report,
    pub(super) promise: Promise,
    /// Whether the promise is that all is exact on this target; else a fault must show.
    pub(super) expects_exact: bool,
    /// Whether it came so, and no request failed.
    pub(in crate::load) kept: bool,
    /// What is to be known besides.
    pub(super) notes: Vec<String>,
    /// Orders per second of the run itself.
    pub(in crate::load) orders_per_sec: f64,
    /// Orders per second where that was measured: each of another user, with plenty of pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<Spread>,
    /// Answers by instance.
    pub(super) instances: BTreeMap<String, u64>,
    /// Why requests failed, and how many for each reason.
    pub(super) reasons: BTreeMap<String, u64>,
}

impl Row {
    pub(super) fn new(
        plan: &Plan,
        tally: &Tally,
        report: Report,
        ended: &Ended,
        cancelled: bool,
    ) -> Self {
        let counts = ended.all.counts();
        let instances = ended.all.instances().clone();
        let mut notes = Vec::new();
        let wanted = if plan.target == ONE { 1 } else { INSTANCES };
        if !cancelled && instances.len() as u64 != wanted {
            let names: Vec<_> = instances.keys().map(String::as_str).collect();
            notes.push(format!(
                "target {} is {wanted} instance(s), and these answered: {}",
                plan.target,
                names.join(", ")
            ));
        }
        let expects_exact = plan.timed.is_some() || is_exact(plan.step, &plan.target);
        let as_expected = (report.verdict == Verdict::Exact) == expects_exact;
        Self {
            strategy: plan.step.slug,
            target: plan.target.clone(),
            users: plan.users,
            repeats: plan.repeats,
            stats: ended.stats.clone(),
            ordered: counts.sold,
            sold_out: tally.sold_out,
            already_ordered: tally.already_ordered,
            under_way: tally.under_way,
            errors: counts.refused,
            unknown: counts.unknown,
            promise: plan.step.promise,
            expects_exact,
            kept: as_expected && counts.failed() == 0 && notes.is_empty(),
            notes,
            orders_per_sec: per_second(ended),
            rate: None,
            instances,
            reasons: ended.all.reasons().clone(),
            report,
        }
    }

    /// Why the promise counts as broken, in one line; `None` where it was kept.
    pub(in crate::load) fn complaint(&self) -> Option<String> {
        let Self {
            strategy,
            target,
            ordered,
            errors,
            unknown,
            report,
            ..
        } = self;
        let what = match (self.expects_exact, report.verdict) {
            _ if self.kept => return None,
            (false, Verdict::Exact) => "did not show its fault".to_owned(),
            (true, Verdict::Exact) | (false, _) => {
                "not every request was answered as it must".to_owned()
            }
            (true, verdict) => verdict.word(),
        };
        let mut line = format!(
            "{strategy} on {target}: {what}: {ordered} ordered, {} written, ",
            report.orders
        );
        line += &format!(
            "{} pieces of {} left, {errors} errors, {unknown} unknown",
            report.stock, report.pieces
        );
        let reasons = self.reasons.keys().cloned();
        Some(
            self.notes
                .iter()
                .cloned()
                .chain(reasons)
                .fold(line, |line, note| format!("{line}; {note}")),
        )
    }
}

/// Whether a step promises that all is exact on a target.
pub(super) fn is_exact(step: &Step, target: &str) -> bool {
    match step.promise {
        Promise::Unsafe => false,
        Promise::OneProcess => target == ONE,
        Promise::Lease | Promise::Safe => true,
    }
}
