//! oversell compare

use crate::{addresses::Addresses, failure::Failure};

/// Loads every strategy and says which oversold, and what each costs.
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
