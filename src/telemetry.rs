//! The log: to stderr, as text or as JSON lines, filtered by `RUST_LOG` (`info` without it).

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// What is logged where `RUST_LOG` says nothing: the clients report each failed attempt to connect; we do once.
const DEFAULT: &str = "info,zookeeper_client=error,sqlx=error";

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// For machines: one JSON object for each line.
    Json,
}

/// Starts the log. A second call changes nothing.
pub fn init(form: Form) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match form {
        Form::Text => log.try_init(),
        Form::Json => log.json().flatten_event(true).try_init(),
    };
    started.ok();
}
