//! oversell serve

use crate::failure::Failure;

/// Runs one instance of the service.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::Unusable("not written yet".into()))
}
