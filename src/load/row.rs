//! The figures of one run, as a table, a file and the page show them.

use super::{
    engine::LoadResult,
    history::{Contention, OutcomeCounts},
    lanes::Lanes,
    plan::{INSTANCES, ONE_INSTANCE, Orders, Plan, target_name},
    stats::Stats,
    verdict::{StockChange, Verdict, expected, judge, judge_orders, oversold},
};
use crate::{
    seckill::{SeckillStep, check},
    stock::{Promise, Store, Strategy},
};
use oversell_lab::{spread::Spread, terminal::chinese::localized};
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of one run. In JSON the columns of the Aggregate Report ([`Stats`]) stand beside the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The slug of the strategy or of the step.
    pub strategy: &'static str,
    /// `one` instance or `three` behind nginx.
    pub target: String,
    pub threads: usize,
    pub loops: usize,
    /// How long the run took, ms; of a timed run, its measured time.
    pub elapsed_ms: u64,
    #[serde(flatten)]
    pub stats: Stats,
    /// Where the pieces of a product are counted; `None` for a voucher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// Pieces before and after.
    #[serde(flatten)]
    pub stock_change: StockChange,
    /// All requests by outcome, those of a warm-up too; one refused because of an earlier order does not count as sold out.
    #[serde(flatten)]
    pub counts: OutcomeCounts,
    /// `sold − (before − after)`; of a voucher, orders beyond its pieces.
    pub oversold: i64,
    /// Pieces sold per second.
    pub sold_per_sec: f64,
    /// Retries and waits, absent if the answers do not report them.
    #[serde(flatten)]
    pub contention: Option<Contention>,
    /// The most requests that were inside the critical section at once; absent where the answers do not say, or there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_inside: Option<u64>,
    /// The requests that were inside, to be drawn; of many, a sample. Only where the plan asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Lanes>,
    /// Requests that were due at the rate asked for and were not sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub behind: u64,
    pub verdict: Verdict,
    pub promise: Promise,
    /// The verdict that follows from the promise on this target.
    pub expected: Verdict,
    /// Whether the verdict is the expected one (printed code need not show its fault), no request failed or was left out,
    /// and all instances answered.
    pub kept: bool,
    /// Remarks on the verdict, such as why it says less than it might.
    pub notes: Vec<String>,
    /// The rate of sales, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Whether the rate is so near to the ceiling of its target that the generator bounds it, not the strategy.
    pub bounded_by_generator: bool,
    pub instances: BTreeMap<String, u64>,
    /// Why requests failed, and how many for each reason.
    pub reasons: BTreeMap<String, u64>,
    /// Further figures of a run that ordered a voucher.
    #[serde(flatten)]
    pub orders: Option<OrderFigures>,
}

/// Further figures of a run that ordered a voucher.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderFigures {
    /// The users, and how often each of them ordered.
    #[serde(flatten)]
    pub to: Orders,
    pub ordered: u64,
    /// The orders that were refused.
    #[serde(flatten)]
    pub tally: RefusedOrders,
    /// Orders answered with success, per second.
    pub orders_per_sec: f64,
    /// Whether the promise is exact orders on this target; else a fault must show.
    pub expects_exact: bool,
    /// All faults that the checker found in the orders.
    pub faults: Vec<check::OrdersVerdict>,
    pub pieces: i64,
    pub stock: i64,
    pub orders: i64,
    /// Orders beyond the first of each user.
    pub duplicate_orders: usize,
    /// Orders that were answered and are not there.
    pub lost_orders: usize,
    /// Orders with an id that another order has.
    pub repeated_ids: usize,
    /// Orders in the database that no answer and no unknown request accounts for.
    pub unasked_orders: u64,
}

/// The summary of the timed rounds of one plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Pieces sold per second; refusals and errors do not count.
    #[serde(flatten)]
    pub sold_per_sec: Spread,
    /// Answers of any kind per second: the work of the generator.
    pub answers_per_sec: f64,
    /// The median latency, ms: the median of the rounds.
    pub median_ms: f64,
    /// The 99 % line, ms: the median of the rounds.
    pub p99_ms: f64,
    /// Retries for each piece sold; absent if the answers of a round do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_per_sold: Option<f64>,
    /// Requests of all rounds that failed, or whose effect is unknown.
    pub errors: u64,
    /// Requests of all rounds that were due and not sent, where the loop is open.
    pub behind: u64,
    /// The worst verdict of the rounds.
    pub verdict: Verdict,
    /// The complaint about a round that breaks the promise.
    #[serde(skip)]
    pub broken: Option<String>,
}

/// The goods of a run, their seller, and the state of the stock after it.
pub(super) struct SaleResult {
    /// The slug of the strategy or of the step.
    pub(super) strategy: &'static str,
    pub(super) promise: Promise,
    /// Whether it is printed code, whose flaw shows by chance only; its race shows the flaw each time.
    pub(super) as_printed: bool,
    /// Where the pieces of a product are counted; `None` for a voucher.
    pub(super) store: Option<Store>,
    pub(super) stock_change: StockChange,
    pub(super) oversold: i64,
    pub(super) verdict: Verdict,
    /// The orders, if a voucher was sold.
    pub(super) orders: Option<OrderCheck>,
}

/// The users of a voucher, and the checker's report on their orders.
pub(super) struct OrderCheck {
    pub(super) to: Orders,
    pub(super) tally: RefusedOrders,
    pub(super) report: check::OrdersReport,
}

impl SaleResult {
    /// The result of a run that sold a product: the verdict compares the stock with the answers.
    pub(super) fn product(strategy: &Strategy, stock_change: StockChange, counts: OutcomeCounts) -> Self {
        Self {
            strategy: strategy.slug,
            promise: strategy.spec.promise,
            as_printed: strategy.spec.rank.is_as_printed(),
            store: Some(strategy.spec.store),
            stock_change,
            oversold: oversold(stock_change, counts),
            verdict: judge(stock_change, counts),
            orders: None,
        }
    }

    /// The result of a run that sold a voucher: the verdict is the checker's, unless requests failed ([`judge_orders`]).
    pub(super) fn voucher(step: &SeckillStep, orders: OrderCheck, counts: OutcomeCounts) -> Self {
        let report = &orders.report;
        Self {
            strategy: step.slug,
            promise: step.spec.promise,
            as_printed: step.spec.rank.is_as_printed(),
            store: None,
            stock_change: StockChange { before: report.pieces, after: report.stock },
            oversold: report.oversold,
            verdict: judge_orders(report, counts),
            orders: Some(orders),
        }
    }
}

/// How many orders were refused, by reason: their user has one already, or has one under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RefusedOrders {
    /// 用户已经购买过一次!
    pub already_ordered: u64,
    /// 不允许重复下单
    pub under_way: u64,
}

impl Rate {
    /// Summarizes the rows of all rounds.
    pub(super) fn of(rounds: &[Row]) -> Self {
        let median = |value: fn(&Row) -> f64| Spread::from_values(rounds.iter().map(value)).median;
        let retries: Option<Vec<_>> = rounds.iter().map(|row| Some(row.contention?.retries_per_sold)).collect();
        Self {
            sold_per_sec: Spread::from_values(rounds.iter().map(|row| row.sold_per_sec)),
            answers_per_sec: median(|row| row.stats.throughput),
            median_ms: median(|row| row.stats.median),
            p99_ms: median(|row| row.stats.p99_line),
            retries_per_sold: retries.map(|each| Spread::from_values(each).median),
            errors: rounds.iter().map(|row| row.counts.failed()).sum(),
            behind: rounds.iter().map(|row| row.behind).sum(),
            verdict: rounds.iter().map(|row| row.verdict).max().unwrap_or(Verdict::Errors),
            broken: rounds.iter().find_map(Row::broken_in_a_round),
        }
    }
}

impl Row {
    /// Makes the row of a run that has ended. An instance that did not answer, or requests that were not sent (unless `cancelled`
    /// or timed), become notes, and the verdict is then at least [`Verdict::Errors`].
    pub(super) fn new(plan: &Plan, sold: SaleResult, ended: LoadResult, cancelled: bool) -> Self {
        let mut counts = ended.all.counts;
        let mut notes: Vec<_> = missing_instances(plan, &ended.all.instances).into_iter().collect();
        let (samples, planned) = (counts.samples(), plan.planned_requests());
        if !cancelled && plan.timed.is_none() && samples != planned {
            notes.push(localized!("{planned} 个请求只发了 {samples} 个", "{samples} of {planned} requests were sent"));
        }
        let expected = match sold.orders {
            // Each user orders once and nobody stays inside, so no fault can show.
            Some(_) if plan.timed.is_some() => Verdict::Exact,
            _ => expected(sold.promise, plan.target == ONE_INSTANCE),
        };
        let verdict = match notes.is_empty() {
            true => sold.verdict,
            false => sold.verdict.max(Verdict::Errors),
        };
        // An unsafe step may show any fault.
        let as_expected = match expected {
            Verdict::Exact => verdict == Verdict::Exact,
            _ => sold.as_printed || verdict.is_refuted(),
        };
        let kept = as_expected && counts.failed() == 0 && notes.is_empty();
        let seconds = ended.elapsed.as_secs_f64().max(1e-9);
        let sold_per_sec = (ended.counted.counts.sold as f64 / seconds).round();
        let orders = sold.orders.map(|OrderCheck { to, tally, report }| OrderFigures {
            to,
            ordered: counts.sold,
            tally,
            orders_per_sec: sold_per_sec,
            expects_exact: expected == Verdict::Exact,
            faults: report.faults,
            pieces: report.pieces,
            stock: report.stock,
            orders: report.orders,
            duplicate_orders: report.duplicate_orders,
            lost_orders: report.lost_orders,
            repeated_ids: report.repeated_ids,
            unasked_orders: report.unasked_orders,
        });
        if let Some(OrderFigures { tally, .. }) = &orders {
            counts.sold_out -= tally.already_ordered + tally.under_way;
        }
        Self {
            strategy: sold.strategy,
            target: plan.target.clone(),
            threads: plan.threads,
            loops: plan.loops,
            elapsed_ms: u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX),
            stats: ended.stats,
            store: sold.store,
            stock_change: sold.stock_change,
            counts,
            oversold: sold.oversold,
            sold_per_sec,
            contention: ended.counted.contention(),
            most_inside: ended.most_inside,
            lanes: ended.lanes,
            behind: ended.behind,
            verdict,
            promise: sold.promise,
            expected,
            kept,
            notes,
            rate: None,
            bounded_by_generator: false,
            instances: ended.all.instances,
            reasons: ended.all.reasons,
            orders,
        }
    }

    /// Pieces that left the stock.
    pub fn pieces_gone(&self) -> i64 {
        self.stock_change.before - self.stock_change.after
    }

    /// Pieces sold per second: in the rounds for the rate, or in the one run of the verdict.
    pub fn sales(&self) -> Spread {
        let one_run = || Spread::from_values([self.sold_per_sec]);
        self.rate.as_ref().map_or_else(one_run, |rate| rate.sold_per_sec)
    }

    /// Why requests failed, the most frequent reason first; `None` if none failed.
    pub fn reasons_line(&self) -> Option<String> {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let reasons: Vec<_> = reasons.into_iter().map(|(why, n)| format!("{n}× {why}")).collect();
        (!reasons.is_empty()).then(|| {
            localized!("{}，{} 个连接：{}", "{}, {} connections: {}", target_name(&self.target), self.threads, reasons.join("; "))
        })
    }

    /// Why the promise counts as broken, in the run of the verdict or else in a round; `None` if it was kept.
    pub fn broken_promise(&self) -> Option<String> {
        if self.kept {
            let broken = self.rate.as_ref()?.broken.as_ref()?;
            return Some(localized!("测速率时：{broken}", "while its rate was measured: {broken}"));
        }
        let Self { strategy, target, .. } = self;
        let OutcomeCounts { sold, sold_out, errors, unknown } = self.counts;
        let seen = match &self.orders {
            None => localized!("卖出 {sold}，库存减少 {}", "sold {sold}, {} gone", self.pieces_gone()),
            Some(OrderFigures { orders, pieces, stock, .. }) => {
                localized!(
                    "下单 {sold}，写下 {orders}，{pieces} 件还剩 {stock} 件",
                    "{sold} ordered, {orders} written, {stock} pieces of {pieces} left"
                )
            }
        };
        let what = match (self.expected, self.verdict) {
            (Verdict::Exact, Verdict::Oversold) => {
                localized!("超卖 {}：{seen}", "oversold {}: {seen}", self.oversold)
            }
            (Verdict::Exact, fault @ Verdict::Wrong(_)) => {
                let fault = fault.localized();
                localized!("{fault}：{seen}", "{fault}: {seen}")
            }
            (Verdict::Oversold, Verdict::Exact) => {
                localized!("缺陷没有显现：{seen}", "did not show its fault: {seen}")
            }
            _ => localized!(
                "出错 {errors}，未知 {unknown}，售罄 {sold_out}；{seen}",
                "{errors} errors, {unknown} unknown, {sold_out} sold out; {seen}"
            ),
        };
        let notes = self.notes.iter().chain(self.reasons.keys());
        let notes: String = notes.map(|note| format!("; {note}")).collect();
        let target = target_name(target);
        Some(localized!("{strategy}，{target}：{what}{notes}", "{strategy} on {target}: {what}{notes}"))
    }

    /// Why a round for the rate breaks the promise: a product was oversold, or orders are not exact. A fault that does not show counts
    /// in the run of the verdict only.
    fn broken_in_a_round(&self) -> Option<String> {
        let oversold = self.expected == Verdict::Exact && self.verdict.is_refuted();
        self.broken_promise().filter(|_| oversold || self.orders.is_some())
    }
}

/// A note if not exactly one instance answered for the target `one`, or too few (of three, or of the requests) for another.
fn missing_instances(plan: &Plan, answered: &BTreeMap<String, u64>) -> Option<String> {
    let asked = match plan.target.as_str() {
        ONE_INSTANCE => 1,
        _ if plan.timed.is_some() => INSTANCES,
        _ => INSTANCES.min(plan.planned_requests()),
    };
    let names: Vec<_> = answered.keys().map(String::as_str).collect();
    let names = if names.is_empty() { localized!("没有", "none") } else { names.join(", ") };
    let answered = answered.len() as u64;
    let wrong = if plan.target == ONE_INSTANCE { answered != 1 } else { answered < asked };
    wrong.then(|| {
        localized!(
            "目标 {} 应有 {asked} 个实例，应答的有 {answered} 个：{names}",
            "target {} is {asked} instance(s), and {answered} answered: {names}",
            plan.target
        )
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
