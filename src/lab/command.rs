//! oversell lab

use crate::failure::Failure;

/// Starts real servers, three instances and nginx on loopback, until Ctrl-C.
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
