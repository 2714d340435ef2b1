//! The lab: real servers, started and stopped.
pub mod command;

use crate::{addresses::Addresses, failure::Failure};

/// x
#[derive(Debug, Clone, Default)]
pub struct Options {}

/// x
#[derive(Debug)]
pub struct Lab {}

impl Lab {
    /// x
    ///
    /// # Errors
    ///
    /// x
    pub async fn start(_options: Options) -> Result<Self, Failure> {
        Err(Failure::Unusable("not written yet".into()))
    }

    /// x
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        unimplemented!()
    }

    /// x
    pub async fn stop(self) {}
}
