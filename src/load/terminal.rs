//! The terminal of a command: a progress bar, a clean stop, readable figures.

use super::run::Snapshot;
use comfy_table::{
    Cell, CellAlignment, LineStyle, Table,
    presets::{ASCII_MARKDOWN, NOTHING},
};
use indicatif::{HumanCount, ProgressBar};
use oversell_lab::terminal::{
    bilingual::Bilingual,
    chinese::localized,
    failure::Failure,
    stdout::{has_colours, print_to_stderr, progress_bar, terminal_width},
};
use tokio::sync::watch;

/// The failure of a command that a signal has stopped.
pub fn stopped_by_signal() -> Failure {
    Failure::Interrupted(localized!("被信号打断，还没有测完", "cut short by a signal, before all was measured"))
}

/// A progress bar on stderr, until it is dropped; without a terminal, a line for each step that is done.
pub struct Bar {
    bar: ProgressBar,
    /// Whether each step is a line, because stderr is no terminal.
    prints_lines: bool,
}

impl Bar {
    /// A bar with this many steps.
    pub(crate) fn new(steps: usize) -> Self {
        let bar = progress_bar(steps, true);
        let prints_lines = bar.is_hidden();
        Self { bar, prints_lines }
    }

    /// A bar that shows nothing.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), prints_lines: false }
    }

    /// Runs one step, and shows the rate of its snapshots meanwhile.
    pub(crate) async fn run_step<R>(
        &self,
        what: &str,
        mut snapshots: watch::Receiver<Snapshot>,
        work: impl Future<Output = R>,
    ) -> R {
        self.bar.set_message(what.to_owned());
        let show = async {
            while snapshots.changed().await.is_ok() {
                let throughput = snapshots.borrow_and_update().throughput;
                self.bar.set_message(format!("{what}  {}/s", rate(throughput)));
            }
            std::future::pending::<()>().await;
        };
        let done = tokio::select! {
            done = work => done,
            () = show => unreachable!("the snapshots are shown until the step is done"),
        };
        self.bar.inc(1);
        if self.prints_lines {
            let (done, of) = (self.bar.position(), self.bar.length().unwrap_or_default());
            print_to_stderr(format_args!("{done}/{of}  {what}"));
        }
        done
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A column of a table: its head, and the cell of a row.
pub type Column<T> = (Bilingual, fn(&T) -> Cell);

/// Draws a table. The columns with the numbers in `left_aligned` hold words, the others figures. If the terminal is too
/// narrow, empty columns are left out first, then those at the end, which a line names; so the most important come first.
pub fn table<T>(columns: &[Column<T>], left_aligned: &[usize], rows: &[T], markdown: bool) -> String {
    let width = terminal_width().filter(|_| !markdown);
    table_within(columns, left_aligned, rows, markdown, width)
}

/// Draws a table that is at most this wide; without a width, as wide as it comes.
fn table_within<T>(columns: &[Column<T>], left_aligned: &[usize], rows: &[T], markdown: bool, width: Option<usize>) -> String {
    let mut shown: Vec<_> = columns.iter().enumerate().collect();
    let draw = |shown: &[(usize, &Column<T>)]| draw_columns(shown, left_aligned, rows, markdown);
    let mut table = draw(&shown);
    let is_too_wide = |table: &Table| width.is_some_and(|width| drawn_width(table) > width);
    if is_too_wide(&table) {
        shown.retain(|(_, (_, cell))| rows.iter().any(|row| !cell(row).content().is_empty()));
        table = draw(&shown);
    }
    let mut left_out = Vec::new();
    while is_too_wide(&table)
        && shown.len() > 2
        && let Some((_, (head, _))) = shown.pop()
    {
        left_out.insert(0, head.localized());
        table = draw(&shown);
    }
    if left_out.is_empty() {
        return table.to_string();
    }
    let left_out =
        localized!("终端太窄，没有显示：{}", "not shown, as the terminal is narrow: {}", left_out.join(&localized!("、", ", ")));
    format!("{table}\n{left_out}")
}

/// The width of a table: its columns, and a space between each two.
fn drawn_width(table: &Table) -> usize {
    let columns = table.column_max_content_widths();
    let contents: usize = columns.iter().copied().map(usize::from).sum();
    contents + columns.len().saturating_sub(1)
}

/// A table in the style of all tables of the terminal, or in Markdown.
pub fn empty_table(markdown: bool) -> Table {
    let mut table = Table::new();
    if !has_colours() {
        table.force_no_tty();
    }
    table.load_style(match markdown {
        true => ASCII_MARKDOWN,
        false => NOTHING.header_separator(LineStyle::none().fill('─').junction('─')),
    });
    table
}

/// Draws a table of these columns, each with its number.
fn draw_columns<T>(columns: &[(usize, &Column<T>)], left_aligned: &[usize], rows: &[T], markdown: bool) -> Table {
    let mut table = empty_table(markdown);
    table.set_header(columns.iter().map(|(_, (head, _))| head.localized()));
    table.add_rows(rows.iter().map(|row| columns.iter().map(|(_, (_, cell))| cell(row))));
    for (column, (i, _)) in table.column_iter_mut().zip(columns) {
        if !markdown {
            column.set_padding((0, 0));
        }
        if !left_aligned.contains(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A whole number with a comma at every thousand.
pub(crate) fn with_commas(n: i64) -> String {
    format!("{}{}", if n < 0 { "-" } else { "" }, HumanCount(n.unsigned_abs()))
}

/// A rate per second, rounded to three digits: further digits differ from run to run.
pub fn rate(per_second: f64) -> String {
    let digits = per_second.abs().max(1.0).log10().floor() as i32;
    let unit = 10f64.powi((digits - 2).max(0));
    with_commas(((per_second / unit).round() * unit) as i64)
}

/// A latency in ms, with about three digits.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.2}"),
        ..100.0 => format!("{ms:.1}"),
        _ => with_commas(ms.round() as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_grouped_by_thousands() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (-4870, "-4,870"), (-100, "-100"), (1_234_567, "1,234,567")] {
            assert_eq!(with_commas(n), text);
        }
        for (n, text) in [(0.0, "0"), (7.4, "7"), (498.7, "499"), (13_149.0, "13,100"), (123_456.0, "123,000")] {
            assert_eq!(rate(n), text);
        }
        for (n, text) in [(0.0, "0.00"), (0.854, "0.85"), (37.04, "37.0"), (120.4, "120"), (3512.3, "3,512")] {
            assert_eq!(ms(n), text);
        }
    }

    #[test]
    fn a_table_fits_its_terminal_and_says_what_it_leaves_out() {
        const COLUMNS: [Column<i64>; 5] = [
            (Bilingual::of("策略", "strategy"), |_| "redis-lock".into()),
            (Bilingual::of("从", "from"), |_| "".into()),
            (Bilingual::of("结论", "verdict"), |_| "exact".into()),
            (Bilingual::of("99% ms", "99% ms"), |n| with_commas(*n).into()),
            (Bilingual::of("收", "recv KB/s"), |n| with_commas(*n).into()),
        ];
        let at = |width| table_within(&COLUMNS, &[0, 1, 2], &[1, 2], false, width);
        assert!(!at(None).contains("not shown") && at(None).contains("from"), "elsewhere nothing is left out");
        let without_the_empty = at(Some(35));
        assert!(without_the_empty.contains("recv") && !without_the_empty.contains("from"), "{without_the_empty}");
        for width in [20, 30] {
            let text = oversell_lab::terminal::wrap::wrap_lines(&at(Some(width)), width);
            let fits = |line: &str| line.chars().count() <= width;
            assert!(text.lines().all(fits), "{text}");
            assert!(text.contains("redis-lock") && text.contains("exact"), "{text}");
            let flat = text.replace('\n', " ");
            assert!(flat.contains("narrow") && flat.ends_with("recv KB/s"), "{text}");
        }
    }
}
