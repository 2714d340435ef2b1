//! The log, to stderr, as text or as JSON lines, filtered by `RUST_LOG` (`info` without it); and the lessons' console, to
//! stdout, which `RUST_LOG` does not filter.
//!
//! `RUST_LOG` holds levels by target, as `debug` or `info,sqlx=error`.

use crate::console;
use std::io::{IsTerminal, stderr, stdout};
use tracing::Level;
use tracing_subscriber::{Layer, filter::Targets, fmt, fmt::time::ChronoLocal, layer::SubscriberExt, util::SubscriberInitExt};

/// The filter without `RUST_LOG`. Clients log each failed attempt to connect; this service logs it once.
const DEFAULT_FILTER: &str = "info,zookeeper_client=error,sqlx=error";

/// The form of a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    /// For machines: one JSON object for each line.
    Json,
}

/// The levels of `RUST_LOG`; [`DEFAULT_FILTER`] if it is unset or, with a warning on stderr, invalid.
fn filter() -> Targets {
    let levels = std::env::var("RUST_LOG").unwrap_or_else(|_| DEFAULT_FILTER.to_owned());
    levels.parse().unwrap_or_else(|error| {
        eprintln!("RUST_LOG={levels}: {error}; `{DEFAULT_FILTER}` is taken");
        DEFAULT_FILTER.parse().unwrap_or_default()
    })
}

/// Starts the log and the console. A second call changes nothing.
pub(crate) fn init(form: LogFormat) {
    let log = fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal());
    let log = match form {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    let console = fmt::layer()
        .with_writer(stdout)
        .with_ansi(false)
        .with_level(false)
        .with_target(false)
        .with_timer(ChronoLocal::new("%H:%M:%S%.3f".to_owned()));
    let lines = Targets::new().with_target(console::TARGET, Level::INFO);
    let printer = tracing_subscriber::registry().with(console).with(lines);
    console::PRINTER.set(printer.into()).ok();
    tracing_subscriber::registry().with(log).with(filter()).try_init().ok();
}
