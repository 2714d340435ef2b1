//! The rows as tables for the terminal, and a line for each strategy's promise.

use super::{
    history::Contention,
    plan::ONE,
    row::{OrderFigures, Rate, Row},
    terminal::{Column, ms, rate, table, whole},
    verdict::Verdict,
};
use comfy_table::{Cell, Color};

/// The stock, and the Aggregate Report.
const AGGREGATE: [Column<Row>; 19] = [
    ("strategy", |row| row.strategy.into()),
    ("target", |row| row.target.as_str().into()),
    ("verdict", |row| red(row, row.verdict.to_string().into())),
    ("oversold", |row| red(row, whole(row.oversold).into())),
    ("sold", |row| count(row.counts.sold)),
    ("before", |row| whole(row.shelf.before).into()),
    ("after", |row| whole(row.shelf.after).into()),
    ("samples", |row| count(row.stats.samples)),
    ("err %", |row| {
        format!("{:.2}", row.stats.error_percent).into()
    }),
    ("per s", |row| rate(row.stats.throughput).into()),
    ("median ms", |row| ms(row.stats.median).into()),
    ("99% ms", |row| ms(row.stats.p99_line).into()),
    ("avg ms", |row| ms(row.stats.average).into()),
    ("90% ms", |row| ms(row.stats.p90_line).into()),
    ("95% ms", |row| ms(row.stats.p95_line).into()),
    ("min ms", |row| ms(row.stats.min).into()),
    ("max ms", |row| ms(row.stats.max).into()),
    ("in KB/s", |row| rate(row.stats.received_kb_per_sec).into()),
    ("out KB/s", |row| rate(row.stats.sent_kb_per_sec).into()),
];

/// How the strategies contend, and what they sell in a second where that was measured.
const CONTENTION: [Column<Row>; 12] = [
    ("strategy", |row| row.strategy.into()),
    ("target", |row| row.target.as_str().into()),
    ("sold/s", |row| rate(row.sales().median).into()),
    ("from", |row| rated(row, |r| rate(r.sold_per_sec.min))),
    ("to", |row| rated(row, |r| rate(r.sold_per_sec.max))),
    ("99% ms", |row| rated(row, |r| ms(r.p99_ms))),
    ("retries/sold", |row| {
        told(row, |t| format!("{:.2}", t.retries_per_sold))
    }),
    ("mean wait ms", |row| told(row, |t| ms(t.waited_mean_ms))),
    ("longest ms", |row| {
        told(row, |t| ms(t.waited_max_ms as f64))
    }),
    ("locks lost", |row| told(row, |t| t.lock_lost.to_string())),
    ("instances", |row| instances(row).into()),
    ("", |row| remarks(row).into()),
];

/// Orders of a voucher.
const ORDERS: [Column<Row>; 19] = [
    ("strategy", |row| row.strategy.into()),
    ("target", |row| row.target.as_str().into()),
    ("verdict", |row| red(row, row.verdict.to_string().into())),
    ("oversold", |row| whole(row.oversold).into()),
    ("twice", |row| {
        of_orders(row, |o| count(o.duplicate_orders as u64))
    }),
    ("lost", |row| {
        of_orders(row, |o| count(o.lost_orders as u64))
    }),
    ("left", |row| whole(row.shelf.after).into()),
    ("written", |row| of_orders(row, |o| whole(o.orders).into())),
    ("samples", |row| count(row.stats.samples)),
    ("ordered", |row| count(row.counts.sold)),
    ("sold out", |row| count(row.counts.sold_out)),
    ("already", |row| {
        of_orders(row, |o| count(o.tally.already_ordered))
    }),
    ("under way", |row| {
        of_orders(row, |o| count(o.tally.under_way))
    }),
    ("errors", |row| count(row.counts.failed())),
    ("median ms", |row| ms(row.stats.median).into()),
    ("99% ms", |row| ms(row.stats.p99_line).into()),
    ("orders/s", |row| {
        rated(row, |r| rate(r.sold_per_sec.median))
    }),
    ("from", |row| rated(row, |r| rate(r.sold_per_sec.min))),
    ("to", |row| rated(row, |r| rate(r.sold_per_sec.max))),
];

/// The Aggregate Report of these rows.
pub(super) fn aggregate(rows: &[Row], markdown: bool) -> String {
    table(&AGGREGATE, &[0, 1, 2], rows, markdown)
}

/// How their strategies contend.
pub(super) fn contention(rows: &[Row], markdown: bool) -> String {
    table(&CONTENTION, &[0, 1, 10, 11], rows, markdown)
}

/// The orders of a voucher.
pub(super) fn orders(rows: &[Row], markdown: bool) -> String {
    table(&ORDERS, &[0, 1, 2], rows, markdown)
}

fn count(n: u64) -> Cell {
    whole(i64::try_from(n).unwrap_or(i64::MAX)).into()
}

/// Red where something is surely wrong.
fn red(row: &Row, cell: Cell) -> Cell {
    if row.verdict.is_refuted() {
        cell.fg(Color::Red)
    } else {
        cell
    }
}

fn rated(row: &Row, show: fn(&Rate) -> String) -> Cell {
    row.rate.as_ref().map(show).unwrap_or_default().into()
}

fn told(row: &Row, show: fn(&Contention) -> String) -> Cell {
    row.told.as_ref().map(show).unwrap_or_default().into()
}

fn of_orders(row: &Row, show: fn(&OrderFigures) -> Cell) -> Cell {
    row.orders.as_ref().map_or_else(|| "".into(), show)
}

/// The names of the instances that answered.
pub(super) fn instances(row: &Row) -> String {
    let names: Vec<_> = row.instances.keys().map(String::as_str).collect();
    names.join(" ")
}

fn remarks(row: &Row) -> String {
    let (errors, behind) = row.rate.as_ref().map_or((0, 0), |r| (r.errors, r.behind));
    let remarks = [
        (row.bounded_by_generator).then(|| "bounded by the generator".to_owned()),
        (errors > 0).then(|| format!("{errors} errors in the rounds")),
        (behind > 0).then(|| format!("{behind} due, not sent: 99% is a lower bound")),
    ];
    remarks.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// One line for each strategy: what it promises, and whether it was so.
pub(super) fn promises(rows: &[Row]) -> Vec<String> {
    rows.chunk_by(|a, b| a.strategy == b.strategy)
        .map(promise)
        .collect()
}

fn promise(rows: &[Row]) -> String {
    let on: Vec<_> = rows.iter().map(seen).collect();
    let (strategy, promise) = rows.first().map_or(("", String::new()), |row| {
        (row.strategy, row.promise.to_string())
    });
    let verb = if rows.iter().all(|row| row.complaint().is_none()) {
        "✓ as promised"
    } else {
        "✗ NOT as promised"
    };
    let notes: Vec<_> = rows
        .iter()
        .flat_map(|row| row.notes.iter().cloned().chain(row.reasons_line()))
        .collect();
    let notes = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join("; ")),
    };
    format!("{verb}  {strategy} [{promise}]: {}{notes}", on.join(", "))
}

fn seen(row: &Row) -> String {
    let place = if row.target == ONE {
        "one instance"
    } else {
        "three instances"
    };
    match row.verdict {
        Verdict::Oversold => format!("oversold {} on {place}", whole(row.oversold)),
        verdict => format!("{verdict} on {place}"),
    }
}
