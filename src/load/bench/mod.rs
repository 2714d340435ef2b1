//! bench
use crate::{addresses::Addresses, failure::Failure};
/// x
#[derive(Debug, clap::Args)]
pub struct Args {}
/// x
///
/// # Errors
///
/// x
pub async fn run(_args: Args, _at: Option<Addresses>) -> Result<(), Failure> {
    Err(Failure::Unusable("not written yet".into()))
}
