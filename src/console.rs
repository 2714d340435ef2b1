//! An instance's console: a line for each step of a lesson, with its time, who asked, and the course's words.
//!
//! The lines go to stdout, apart from the log, which goes to stderr: so a lab can show those of three instances side by
//! side. [`telemetry`](crate::telemetry) prints them.

use std::fmt::Display;

/// The target of the lines, which the log leaves out.
pub const TARGET: &str = "oversell::console";

/// Prints a line.
pub fn say(who: Option<&str>, words: impl Display) {
    match who {
        Some(who) => tracing::info!(target: TARGET, "{who} {words}"),
        None => tracing::info!(target: TARGET, "{words}"),
    }
}
