//! The rows as a table for the terminal, and a line for each strategy's promise.

use crate::load::{
    Row,
    row::ONE,
    terminal::{ms, rate, whole},
    verdict::Verdict,
};
use comfy_table::{Cell, CellAlignment, Color, LineStyle, Table, presets::NOTHING};

const COLUMNS: [&str; 19] = [
    "strategy", "target", "samples", "average", "median", "90%", "95%", "99%", "min", "max", "error%", "per s", "recv",
    "sent", "before", "after", "sold", "oversold", "verdict",
];
/// The columns that are words; the others are figures.
const WORDS: [usize; 3] = [0, 1, 18];

/// The table. Latencies are in ms, `recv` and `sent` in KB/s.
pub(super) fn of(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(COLUMNS);
    for row in rows {
        table.add_row(cells(row));
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 0));
        if !WORDS.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn cells(row: &Row) -> Vec<Cell> {
    let stats = &row.stats;
    let unsigned = |n: u64| whole(i64::try_from(n).unwrap_or(i64::MAX));
    let mut cells: Vec<Cell> = vec![row.strategy.into(), row.target.as_str().into(), unsigned(stats.samples).into()];
    let latencies = [stats.average, stats.median, stats.p90_line, stats.p95_line, stats.p99_line, stats.min, stats.max];
    cells.extend(latencies.map(|latency| Cell::from(ms(latency))));
    cells.push(format!("{:.2}", stats.error_percent).into());
    cells.extend([stats.throughput, stats.received_kb_per_sec, stats.sent_kb_per_sec].map(|r| Cell::from(rate(r))));
    cells.extend([whole(row.before), whole(row.after), unsigned(row.sold)].map(Cell::from));
    let oversold = row.verdict == Verdict::Oversold;
    let red = |cell: Cell| if oversold { cell.fg(Color::Red) } else { cell };
    cells.push(red(whole(row.oversold).into()));
    cells.push(red(row.verdict.word().into()));
    cells
}

/// One line for each strategy: what it promises, and whether it was so.
pub(super) fn promises(rows: &[Row]) -> Vec<String> {
    rows.chunk_by(|a, b| a.strategy == b.strategy).map(promise).collect()
}

fn promise(rows: &[Row]) -> String {
    let kept = rows.iter().all(|row| row.kept);
    let on: Vec<_> = rows.iter().map(seen).collect();
    let (strategy, promise) = rows.first().map_or(("", ""), |row| (row.strategy, row.promise_word()));
    let verb = if kept { "✓ as promised" } else { "✗ NOT as promised" };
    let reasons: Vec<_> = rows.iter().filter_map(Row::reasons_line).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
    format!("{verb}  {strategy} [{promise}]: {}{reasons}", on.join(", "))
}

fn seen(row: &Row) -> String {
    let place = if row.target == ONE { "one instance" } else { "three instances" };
    match row.verdict {
        Verdict::Oversold => format!("oversold {} on {place}", whole(row.oversold)),
        verdict => format!("{} on {place}", verdict.word()),
    }
}
