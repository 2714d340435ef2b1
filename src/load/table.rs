//! The rows as tables for the terminal, and a line for each strategy's promise.

use super::{
    history::Contention,
    plan::{ONE_INSTANCE, target_name},
    row::{OrderFigures, Rate, Row},
    terminal::{Column, ms, rate, with_commas},
    verdict::Verdict,
};
use comfy_table::{Cell, Color};
use oversell_lab::terminal::{bilingual::Bilingual, chinese::localized, stdout::colour_mark};

const fn of(zh: &'static str, en: &'static str) -> Bilingual {
    Bilingual::of(zh, en)
}

/// The columns of a table with the stock and the Aggregate Report.
const AGGREGATE: [Column<Row>; 19] = [
    (of("策略", "strategy"), |row| row.strategy.into()),
    (of("目标", "target"), |row| target(row).into()),
    (of("结论", "verdict"), |row| red_if_refuted(row, row.verdict.localized().into())),
    (of("超卖", "oversold"), |row| red_if_refuted(row, with_commas(row.oversold).into())),
    (of("卖出", "sold"), |row| count(row.counts.sold)),
    (of("之前", "before"), |row| with_commas(row.stock_change.before).into()),
    (of("之后", "after"), |row| with_commas(row.stock_change.after).into()),
    (of("请求", "samples"), |row| count(row.stats.samples)),
    (of("出错 %", "err %"), |row| format!("{:.2}", row.stats.error_percent).into()),
    (of("每秒", "per s"), |row| rate(row.stats.throughput).into()),
    (of("中位 ms", "median ms"), |row| ms(row.stats.median).into()),
    (of("99% ms", "99% ms"), |row| ms(row.stats.p99_line).into()),
    (of("平均 ms", "avg ms"), |row| ms(row.stats.average).into()),
    (of("90% ms", "90% ms"), |row| ms(row.stats.p90_line).into()),
    (of("95% ms", "95% ms"), |row| ms(row.stats.p95_line).into()),
    (of("最短 ms", "min ms"), |row| ms(row.stats.min).into()),
    (of("最长 ms", "max ms"), |row| ms(row.stats.max).into()),
    (of("收 KB/s", "in KB/s"), |row| rate(row.stats.received_kb_per_sec).into()),
    (of("发 KB/s", "out KB/s"), |row| rate(row.stats.sent_kb_per_sec).into()),
];

/// The columns of a table with retries, waits and rates.
const CONTENTION: [Column<Row>; 12] = [
    (of("策略", "strategy"), |row| row.strategy.into()),
    (of("目标", "target"), |row| target(row).into()),
    (of("卖出/秒", "sold/s"), |row| rate(row.sales().median).into()),
    (of("最低", "from"), |row| rate_cell(row, |r| rate(r.sold_per_sec.min))),
    (of("最高", "to"), |row| rate_cell(row, |r| rate(r.sold_per_sec.max))),
    (of("99% ms", "99% ms"), |row| rate_cell(row, |r| ms(r.p99_ms))),
    (of("重试/件", "retries/sold"), |row| contention_cell(row, |t| format!("{:.2}", t.retries_per_sold))),
    (of("平均等待 ms", "mean wait ms"), |row| contention_cell(row, |t| ms(t.waited_mean_ms))),
    (of("最长等待 ms", "longest ms"), |row| contention_cell(row, |t| ms(t.waited_max_ms as f64))),
    (of("锁丢失", "locks lost"), |row| contention_cell(row, |t| t.lock_lost.to_string())),
    (of("实例", "instances"), |row| instances(row).into()),
    (of("备注", "remarks"), |row| remarks(row).into()),
];

/// The columns of a table of voucher orders.
const ORDERS: [Column<Row>; 19] = [
    (of("策略", "strategy"), |row| row.strategy.into()),
    (of("目标", "target"), |row| target(row).into()),
    (of("结论", "verdict"), |row| red_if_refuted(row, row.verdict.localized().into())),
    (of("超卖", "oversold"), |row| with_commas(row.oversold).into()),
    (of("重复", "twice"), |row| orders_cell(row, |o| count(o.duplicate_orders as u64))),
    (of("丢失", "lost"), |row| orders_cell(row, |o| count(o.lost_orders as u64))),
    (of("剩余", "left"), |row| with_commas(row.stock_change.after).into()),
    (of("写下", "written"), |row| orders_cell(row, |o| with_commas(o.orders).into())),
    (of("请求", "samples"), |row| count(row.stats.samples)),
    (of("下单", "ordered"), |row| count(row.counts.sold)),
    (of("售罄", "sold out"), |row| count(row.counts.sold_out)),
    (of("已买过", "already"), |row| orders_cell(row, |o| count(o.tally.already_ordered))),
    (of("下单中", "under way"), |row| orders_cell(row, |o| count(o.tally.under_way))),
    (of("出错", "errors"), |row| count(row.counts.failed())),
    (of("中位 ms", "median ms"), |row| ms(row.stats.median).into()),
    (of("99% ms", "99% ms"), |row| ms(row.stats.p99_line).into()),
    (of("订单/秒", "orders/s"), |row| rate_cell(row, |r| rate(r.sold_per_sec.median))),
    (of("最低", "from"), |row| rate_cell(row, |r| rate(r.sold_per_sec.min))),
    (of("最高", "to"), |row| rate_cell(row, |r| rate(r.sold_per_sec.max))),
];

/// A table of rows: its columns, and the numbers of those that are aligned left.
pub(super) type RowTable = (&'static [Column<Row>], &'static [usize]);

/// The table with the stock and the Aggregate Report.
pub(super) const AGGREGATE_TABLE: RowTable = (&AGGREGATE, &[0, 1, 2]);
/// The table with retries, waits and rates.
pub(super) const CONTENTION_TABLE: RowTable = (&CONTENTION, &[0, 1, 10, 11]);
pub(super) const ORDERS_TABLE: RowTable = (&ORDERS, &[0, 1, 2]);

/// A cell with a whole number, with commas.
fn count(n: u64) -> Cell {
    with_commas(i64::try_from(n).unwrap_or(i64::MAX)).into()
}

/// Colours the cell of a refuted row red.
fn red_if_refuted(row: &Row, cell: Cell) -> Cell {
    if row.verdict.is_refuted() { cell.fg(Color::Red) } else { cell }
}

/// A cell of the measured rate; empty if no rate was measured.
fn rate_cell(row: &Row, show: fn(&Rate) -> String) -> Cell {
    row.rate.as_ref().map(show).unwrap_or_default().into()
}

/// A cell of retries and waits; empty if the answers report none.
fn contention_cell(row: &Row, show: fn(&Contention) -> String) -> Cell {
    row.contention.as_ref().map(show).unwrap_or_default().into()
}

/// A cell of a voucher's orders; empty if a product was sold.
fn orders_cell(row: &Row, show: fn(&OrderFigures) -> Cell) -> Cell {
    row.orders.as_ref().map_or_else(|| "".into(), show)
}

/// The names of the instances that answered, separated by spaces.
pub(super) fn instances(row: &Row) -> String {
    let names: Vec<_> = row.instances.keys().map(String::as_str).collect();
    names.join(" ")
}

fn target(row: &Row) -> String {
    target_name(&row.target)
}

/// Remarks on the rate: bounded by the generator, errors, requests not sent.
fn remarks(row: &Row) -> String {
    let (errors, behind) = row.rate.as_ref().map_or((0, 0), |r| (r.errors, r.behind));
    let remarks = [
        row.bounded_by_generator.then(|| localized!("受限于压测端", "bounded by the generator")),
        (errors > 0).then(|| localized!("各轮里有 {errors} 个出错", "{errors} errors in the rounds")),
        (behind > 0).then(|| localized!("{behind} 个到时没有发出：99% 只是下限", "{behind} due, not sent: 99% is a lower bound")),
    ];
    let remarks: Vec<_> = remarks.into_iter().flatten().collect();
    remarks.join(&localized!("；", "; "))
}

/// One line for each strategy, whose rows must be neighbours: its promise, and whether it was kept.
pub(super) fn promise_lines(rows: &[Row]) -> Vec<String> {
    rows.chunk_by(|a, b| a.strategy == b.strategy).map(promise_line).collect()
}

/// The line of one strategy's rows: sign, promise, whether it was kept, the verdict on each target, and the notes.
fn promise_line(rows: &[Row]) -> String {
    let on: Vec<_> = rows.iter().map(verdict_words).collect();
    let (strategy, promise) = rows.first().map_or(("", String::new()), |row| (row.strategy, row.promise.localized()));
    let (sign, verb) = match rows.iter().all(|row| row.broken_promise().is_none()) {
        true => ("✓", localized!("如约", "as promised")),
        false => ("✗", localized!("没有如约", "NOT as promised")),
    };
    let notes: Vec<_> = rows.iter().flat_map(|row| row.notes.iter().cloned().chain(row.reasons_line())).collect();
    let notes = match notes.is_empty() {
        true => String::new(),
        false => localized!("（{}）", " ({})", notes.join(&localized!("；", "; "))),
    };
    let (sign, on) = (colour_mark(sign), on.join(&localized!("，", ", ")));
    localized!("{sign} {verb}  {strategy}［{promise}］：{on}{notes}", "{sign} {verb}  {strategy} [{promise}]: {on}{notes}")
}

/// The row's verdict on its target in words, with the number of pieces oversold.
fn verdict_words(row: &Row) -> String {
    let place = match row.target == ONE_INSTANCE {
        true => localized!("一个实例", "one instance"),
        false => localized!("三个实例", "three instances"),
    };
    match row.verdict {
        Verdict::Oversold => {
            let pieces = with_commas(row.oversold);
            localized!("{place}超卖 {pieces}", "oversold {pieces} on {place}")
        }
        verdict => {
            let verdict = verdict.localized();
            localized!("{place}{verdict}", "{verdict} on {place}")
        }
    }
}
