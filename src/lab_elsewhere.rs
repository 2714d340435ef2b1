//! The lab's stand-in outside Linux: its processes need `setpriv --pdeathsig`, `waitid` and abstract sockets. Everything
//! else works against running servers and instances.

/// `oversell lab` and `--lab`: one line that says what to do instead.
pub mod command {
    use crate::{addresses::Addresses, failure::Failure};
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    /// Starts servers, instances and nginx: on Linux only.
    #[derive(Debug, clap::Args)]
    pub struct Args {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        given: Vec<String>,
    }

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`Failure::Unusable`].
    pub async fn run(_args: Args, _stop: CancellationToken) -> Result<(), Failure> {
        Err(refusal())
    }

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`Failure::Unusable`].
    pub async fn during<R>(
        _stop: CancellationToken,
        _starts: usize,
        _run: impl FnOnce(Addresses, Vec<Duration>) -> R,
    ) -> Result<(), Failure>
    where
        R: Future<Output = Result<(), Failure>>,
    {
        Err(refusal())
    }

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`Failure::Unusable`].
    pub async fn during_with_faults<R>(
        _stop: CancellationToken,
        _run: impl FnOnce(Addresses, CancellationToken) -> R,
    ) -> Result<(), Failure>
    where
        R: Future<Output = Result<(), Failure>>,
    {
        Err(refusal())
    }

    pub(super) fn refusal() -> Failure {
        Failure::Unusable(
            "the lab runs on Linux only: `docker compose up` starts the same in containers, and compare and bench take a \
             cluster that is there (--http, --instance)"
                .to_owned(),
        )
    }
}

/// `oversell doctor`.
pub mod doctor {
    use crate::failure::Failure;

    /// Says what this machine lacks for a lab: on Linux only.
    #[derive(Debug, clap::Args)]
    pub struct Args {}

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`Failure::Unusable`].
    pub fn run(Args {}: Args) -> Result<(), Failure> {
        Err(super::command::refusal())
    }
}
