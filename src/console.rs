//! An instance's console: a line for each step of a lesson, with its time, who asked, and the course's words.
//!
//! The lines go to stdout, apart from the log, which goes to stderr: so a lab can show those of three instances side by
//! side. [`telemetry`](crate::telemetry) prints them.

use std::{fmt::Display, sync::OnceLock};
use tracing::dispatcher::{Dispatch, with_default};

/// The target of the console's lines in `tracing`.
pub(crate) const TARGET: &str = "oversell::console";

/// Prints the lines on stdout; until it is set, they go to the log. It is no layer of the log's subscriber: with a filter for each
/// layer the span of a request would cost twice as much.
pub(crate) static PRINTER: OnceLock<Dispatch> = OnceLock::new();

/// Prints a line on the console of the instance, after the name of `who`. Before `PRINTER` is set it goes to the log.
pub(crate) fn say(who: Option<&str>, words: impl Display) {
    let line = || match who {
        Some(who) => tracing::info!(target: TARGET, "{who} {words}"),
        None => tracing::info!(target: TARGET, "{words}"),
    };
    match PRINTER.get() {
        Some(printer) => with_default(printer, line),
        None => line(),
    }
}

/// The log of this thread.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct Log(std::sync::Arc<parking_lot::Mutex<Vec<u8>>>);

#[cfg(test)]
impl Log {
    /// Listens for as long as the guard is kept.
    pub(crate) fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        // While there is one subscriber, an event that another thread, which has none, sends first is switched off for all.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(tracing::subscriber::NoSubscriber::default()));
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock()).lines().map(str::to_owned).collect()
    }

    /// How many lines contain all of these words.
    pub(crate) fn count(&self, words: &[&str]) -> usize {
        let has = |line: &&String| words.iter().all(|word| line.contains(word));
        self.lines().iter().filter(has).count()
    }
}

#[cfg(test)]
impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
