//! What a command does with its terminal: a bar, a clean stop, figures that can be read.

use super::run::Snapshot;
use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::{io::IsTerminal, path::Path};
use tokio::sync::watch;

/// What a command says when a signal has stopped it.
pub(super) fn stopped() -> Failure {
    Failure::Unusable("stopped by a signal before all was measured".into())
}

/// A progress bar on stderr; nothing where stderr is not a terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar of so many requests or steps.
    pub(super) fn new(requests: u64) -> Self {
        let target =
            if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {percent:>3} %  {msg}");
        Self(
            ProgressBar::with_draw_target(Some(requests), target)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")),
        )
    }

    /// One step further, and what comes next.
    pub(super) fn step(&self, what: &str) {
        self.0.inc(1);
        self.0.set_message(what.to_owned());
    }

    /// Runs `work`, and shows its snapshots meanwhile.
    pub(super) async fn during<R>(
        &self,
        what: &str,
        mut snapshots: watch::Receiver<Snapshot>,
        work: impl Future<Output = R>,
    ) -> R {
        let begun = self.0.position();
        self.0.set_message(what.to_owned());
        let show = async {
            while snapshots.changed().await.is_ok() {
                let now = snapshots.borrow_and_update().clone();
                self.0.set_position(begun + now.samples);
                self.0.set_message(format!("{what}  {}/s", rate(now.throughput)));
            }
            std::future::pending::<()>().await;
        };
        let done = tokio::select! {
            done = work => done,
            () = show => unreachable!("it shows for as long as it is let"),
        };
        self.0.set_position(begun + snapshots.borrow().samples);
        done
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes a value as JSON.
///
/// # Errors
///
/// [`Failure::Unusable`] where the file cannot be written.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Unusable(format!("JSON: {e}")))?;
    write(path, &(text + "\n"))
}

/// Writes a file, and the folder that it is in.
///
/// # Errors
///
/// [`Failure::Unusable`] where it cannot be written.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|e| Failure::Unusable(format!("{}: {e}", path.display())))
}

/// A whole number with a comma at every thousand.
pub(super) fn whole(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate per second: whole, since no digit after the point repeats from run to run.
pub(super) fn rate(per_second: f64) -> String {
    whole(per_second.round() as i64)
}

/// A latency in ms, with about three digits.
pub(super) fn ms(ms: f64) -> String {
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
    fn numbers_are_grouped_by_thousands() {
        for (n, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (-4870, "-4,870"), (-100, "-100"), (1_234_567, "1,234,567")]
        {
            assert_eq!(whole(n), text);
        }
    }

    #[test]
    fn latencies_keep_about_three_digits() {
        for (n, text) in [(0.0, "0.00"), (0.854, "0.85"), (37.04, "37.0"), (120.4, "120"), (3512.3, "3,512")] {
            assert_eq!(ms(n), text);
        }
    }
}
