//! The rows as tables for the terminal, and a line for each strategy's promise.

use crate::load::{
    Row,
    rate::Rate,
    row::ONE,
    terminal::{ms, rate, table, whole},
    verdict::Verdict,
};
use comfy_table::{Cell, Color, Table};

/// The Aggregate Report, and the stock. Latencies are in ms, `recv` and `sent` in KB/s.
pub(super) fn of(rows: &[Row], markdown: bool) -> Table {
    let columns = [
        "strategy", "target", "samples", "average", "median", "90%", "95%", "99%", "min", "max",
        "error%", "per s", "recv", "sent", "before", "after", "sold", "oversold", "verdict",
    ];
    table(&columns, &[0, 1, 18], rows.iter().map(cells), markdown)
}

fn cells(row: &Row) -> Vec<Cell> {
    let stats = &row.stats;
    let unsigned = |n: u64| whole(i64::try_from(n).unwrap_or(i64::MAX));
    let mut cells: Vec<Cell> = vec![
        row.strategy.into(),
        row.target.as_str().into(),
        unsigned(stats.samples).into(),
    ];
    let latencies = [
        stats.average,
        stats.median,
        stats.p90_line,
        stats.p95_line,
        stats.p99_line,
        stats.min,
        stats.max,
    ];
    cells.extend(latencies.map(|latency| Cell::from(ms(latency))));
    cells.push(format!("{:.2}", stats.error_percent).into());
    cells.extend(
        [
            stats.throughput,
            stats.received_kb_per_sec,
            stats.sent_kb_per_sec,
        ]
        .map(|r| Cell::from(rate(r))),
    );
    cells.extend([whole(row.before), whole(row.after), unsigned(row.sold)].map(Cell::from));
    let oversold = row.verdict == Verdict::Oversold;
    let red = |cell: Cell| if oversold { cell.fg(Color::Red) } else { cell };
    cells.push(red(whole(row.oversold).into()));
    cells.push(red(row.verdict.word().into()));
    cells
}

/// How the strategies contend, and what they sell in a second where that was measured. Times are in ms.
pub(super) fn rates(rows: &[Row], markdown: bool) -> Table {
    let columns = [
        "strategy",
        "target",
        "sold/s",
        "from",
        "to",
        "99%",
        "retries/sold",
        "mean wait",
        "longest",
        "locks lost",
        "instances",
        "",
    ];
    table(
        &columns,
        &[0, 1, 10, 11],
        rows.iter().map(contention),
        markdown,
    )
}

fn contention(row: &Row) -> Vec<Cell> {
    let of_rate = |value: fn(&Rate) -> String| row.rate.as_ref().map(value).unwrap_or_default();
    let told = |value: Option<String>| value.unwrap_or_default();
    let instances: Vec<_> = row.instances.keys().map(String::as_str).collect();
    let rounds = row.rate.as_ref();
    let mut remarks = Vec::new();
    if row.bounded_by_generator {
        remarks.push("bounded by the generator".to_owned());
    }
    remarks.extend(
        rounds
            .filter(|r| r.errors > 0)
            .map(|r| format!("{} errors in the rounds", r.errors)),
    );
    remarks.extend(
        rounds
            .filter(|r| r.behind > 0)
            .map(|r| format!("{} due, not sent: 99% is a lower bound", r.behind)),
    );
    [
        row.strategy.into(),
        row.target.clone(),
        row.rate
            .as_ref()
            .map_or_else(|| rate(row.sold_per_sec), |r| rate(r.sold_per_sec.median)),
        of_rate(|r| rate(r.sold_per_sec.min)),
        of_rate(|r| rate(r.sold_per_sec.max)),
        of_rate(|r| ms(r.p99_ms)),
        told(row.retries_per_sold.map(|n| format!("{n:.2}"))),
        told(row.waited_mean_ms.map(ms)),
        told(row.waited_max_ms.map(|n| ms(n as f64))),
        told(row.lock_lost.map(|n| n.to_string())),
        instances.join(" "),
        remarks.join("; "),
    ]
    .map(Cell::from)
    .into()
}

/// One line for each strategy: what it promises, and whether it was so.
pub(super) fn promises(rows: &[Row]) -> Vec<String> {
    rows.chunk_by(|a, b| a.strategy == b.strategy)
        .map(promise)
        .collect()
}

fn promise(rows: &[Row]) -> String {
    let complaints: Vec<_> = rows.iter().filter_map(Row::complaint).collect();
    let on: Vec<_> = rows.iter().map(seen).collect();
    let (strategy, promise) = rows
        .first()
        .map_or(("", ""), |row| (row.strategy, row.promise_word()));
    let verb = if complaints.is_empty() {
        "✓ as promised"
    } else {
        "✗ NOT as promised"
    };
    let notes = rows
        .iter()
        .flat_map(|row| row.notes.iter().cloned().chain(row.reasons_line()));
    let notes: Vec<_> = notes.collect();
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!(" ({})", notes.join("; "))
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
        verdict => format!("{} on {place}", verdict.word()),
    }
}
