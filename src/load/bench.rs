//! oversell bench

use crate::{addresses::Addresses, failure::Failure};

/// Measures each strategy as a ratio to a ceiling of the same run.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(_args: Args, _at: Option<Addresses>) -> Result<(), Failure> {
    Err(Failure::Unusable("not written yet".into()))
}
