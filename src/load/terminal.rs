//! The terminal of a command: a progress bar, a clean stop, readable figures.

use super::run::Snapshot;
use crate::failure::{Failure, unusable};
use comfy_table::{
    Cell, CellAlignment, LineStyle, Table,
    presets::{ASCII_MARKDOWN, NOTHING},
};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;
use std::path::Path;
use tokio::sync::watch;

/// The failure of a command that a signal has stopped.
pub(crate) fn stopped() -> Failure {
    unusable!("stopped by a signal before all was measured")
}

/// A progress bar on stderr; nothing where stderr is not a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar of so many steps.
    pub(crate) fn new(steps: usize) -> Self {
        let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len}  {msg}");
        let style = style
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        Self(ProgressBar::new(steps as u64).with_style(style))
    }

    /// A bar that is not shown.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Runs one step, and shows its snapshots meanwhile.
    pub(crate) async fn during<R>(
        &self,
        what: &str,
        mut snapshots: watch::Receiver<Snapshot>,
        work: impl Future<Output = R>,
    ) -> R {
        self.0.set_message(what.to_owned());
        let show = async {
            while snapshots.changed().await.is_ok() {
                let throughput = snapshots.borrow_and_update().throughput;
                self.0
                    .set_message(format!("{what}  {}/s", rate(throughput)));
            }
            std::future::pending::<()>().await;
        };
        let done = tokio::select! {
            done = work => done,
            () = show => unreachable!("it shows for as long as it is let"),
        };
        self.0.inc(1);
        done
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A column of a table: its head, and what stands in it.
pub(crate) type Column<T> = (&'static str, fn(&T) -> Cell);

/// A table of these rows; `words` are the columns that are not figures.
pub(crate) fn table<T>(
    columns: &[Column<T>],
    words: &[usize],
    rows: &[T],
    markdown: bool,
) -> Table {
    let mut table = Table::new();
    if markdown {
        table.load_style(ASCII_MARKDOWN);
    } else {
        table.load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    }
    table.set_header(columns.iter().map(|(head, _)| *head));
    table.add_rows(
        rows.iter()
            .map(|row| columns.iter().map(|(_, cell)| cell(row))),
    );
    for (i, column) in table.column_iter_mut().enumerate() {
        if !markdown {
            column.set_padding((0, 0));
        }
        if !words.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Writes a value as JSON.
///
/// # Errors
///
/// [`Failure::Unusable`] where the file cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| unusable!("JSON: {e}"))?;
    write(path, &(text + "\n"))
}

/// Writes a file, and the folder that it is in.
///
/// # Errors
///
/// [`Failure::Unusable`] where it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|e| unusable!("{}: {e}", path.display()))
}

/// A whole number with a comma at every thousand.
pub(crate) fn whole(n: i64) -> String {
    format!(
        "{}{}",
        if n < 0 { "-" } else { "" },
        HumanCount(n.unsigned_abs())
    )
}

/// A rate per second with three digits that count: more do not repeat from run to run.
pub(crate) fn rate(per_second: f64) -> String {
    let digits = per_second.abs().max(1.0).log10().floor() as i32;
    let unit = 10f64.powi((digits - 2).max(0));
    whole(((per_second / unit).round() * unit) as i64)
}

/// A latency in ms, with about three digits.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.2}"),
        ..100.0 => format!("{ms:.1}"),
        _ => whole(ms.round() as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands_rates_keep_three_digits_and_latencies_about_three() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-4870, "-4,870"),
            (-100, "-100"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(whole(n), text);
        }
        for (n, text) in [
            (0.0, "0"),
            (7.4, "7"),
            (498.7, "499"),
            (13_149.0, "13,100"),
            (123_456.0, "123,000"),
        ] {
            assert_eq!(rate(n), text);
        }
        for (n, text) in [
            (0.0, "0.00"),
            (0.854, "0.85"),
            (37.04, "37.0"),
            (120.4, "120"),
            (3512.3, "3,512"),
        ] {
            assert_eq!(ms(n), text);
        }
    }
}
