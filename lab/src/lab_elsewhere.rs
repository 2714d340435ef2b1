//! The lab's stand-in outside Linux: each function fails, because a lab needs `setpriv --pdeathsig`, `waitid` and abstract
//! sockets. Everything else works against running servers and instances.

/// `oversell lab` and `--lab`.
pub mod command {
    use crate::{
        addresses::Addresses,
        terminal::failure::{Failure, unusable_localized},
    };
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    /// Starts servers, instances and nginx: on Linux only.
    #[derive(Debug, clap::Args)]
    pub struct Args {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        given: Vec<String>,
    }

    impl Args {
        pub fn with_etcd_if(self, _strategy_needs_it: impl Fn(&str) -> bool) -> Self {
            self
        }
    }

    pub async fn run(_args: Args, _stop: CancellationToken) -> Result<(), Failure> {
        Err(refusal())
    }

    /// What a command needs of a lab of its own.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Needs {
        pub etcd: u16,
        pub starts: usize,
        pub breakable: bool,
    }

    pub async fn run_on_lab<R>(
        _stop: &CancellationToken,
        _needs: Needs,
        _run: impl FnOnce(Addresses, Vec<Duration>) -> R,
    ) -> Result<(), Failure>
    where
        R: Future<Output = Result<(), Failure>>,
    {
        Err(refusal())
    }

    /// The error of every command that needs a lab: what to do instead.
    pub(super) fn refusal() -> Failure {
        unusable_localized!(
            "实验环境只能在 Linux 上运行：`docker compose up` 在容器里启动同样的一套，compare 和 bench 可以测已有的集群\
             （--http、--instance）",
            "the lab runs on Linux only: `docker compose up` starts the same in containers, and compare and bench take a \
             cluster that is there (--http, --instance)"
        )
    }
}

/// `oversell doctor`.
pub mod doctor {
    use crate::terminal::failure::Failure;

    /// Says what this machine lacks for a lab: on Linux only.
    #[derive(Debug, clap::Args)]
    pub struct Args {}

    pub fn run(Args {}: Args) -> Result<(), Failure> {
        Err(super::command::refusal())
    }
}
