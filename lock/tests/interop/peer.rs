//! A process with another library's locks (`interop/`), as the tests talk to it.

use super::support::{Context, Result, SOON, TEST_TIMEOUT, bail, ensure};
use oversell_lab::clients::peer::{Java, Peer as Process, PendingAnswer as Answer};
use std::{
    fmt::{self, Display},
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::process::Command;

/// The library of a peer; `make interop` builds these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// In this version.
    Redisson(&'static str),
    Curator,
    Kazoo,
    /// etcd's client for Go, and by it etcd's lock service.
    Go,
}

impl Library {
    /// The Redisson whose format we use, and the newest.
    pub(crate) const ALL: [Self; 5] = [Self::Redisson("3.13.6"), Self::Redisson("4.7.0"), Self::Curator, Self::Kazoo, Self::Go];

    /// The folder of the build, and its program; `None` if it is not built.
    fn built(self) -> Option<(PathBuf, Command)> {
        let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop");
        let (library, version) = match self {
            Self::Redisson(version) => ("redisson", version),
            Self::Curator => ("curator", "5.9.0"),
            Self::Kazoo => {
                let folder = interop.join("kazoo/venv");
                let mut python = Command::new(folder.join("bin/python"));
                python.arg(interop.join("kazoo/peer.py"));
                let installed = folder.join("installed").is_file();
                return installed.then_some((folder, python));
            }
            Self::Go => {
                let folder = interop.join("etcd/target");
                let program = folder.join("peer");
                return program.is_file().then(|| (folder, Command::new(program)));
            }
        };
        let java = Java { library, version };
        let built = (java.folder(&interop), java.command(&interop));
        java.is_built(&interop).then_some(built)
    }
}

impl Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redisson(version) => write!(f, "redisson-{version}"),
            Self::Curator => f.write_str("curator"),
            Self::Kazoo => f.write_str("kazoo"),
            Self::Go => f.write_str("go"),
        }
    }
}

/// The process. Dropping it kills it.
pub(crate) struct Peer {
    pub(crate) library: Library,
    process: Process,
}

impl Deref for Peer {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

pub(crate) struct Pending(Answer);

impl Peer {
    /// Starts it, with a log of this name beside the build; it answers once it has connected. `watchdog`: Redisson's
    /// watchdog lease, or its default.
    pub(crate) async fn start(library: Library, log: &str, server: &str, watchdog: Option<Duration>) -> Result<Self> {
        let not_built = || format!("{library} is not built: run `make interop`");
        let (folder, mut program) = library.built().with_context(not_built)?;
        let watchdog = watchdog.map(|lease| lease.as_millis().to_string());
        program.arg(server).envs(watchdog.map(|ms| ("WATCHDOG_MS", ms)));
        let log = folder.join(format!("{log}.log"));
        let process = Process::start(library, program, &log).await?;
        Ok(Self { library, process })
    }

    /// Sends a command to the thread `who`, without waiting.
    pub(crate) fn tell(&self, who: &str, command: impl Display) -> Pending {
        Pending(self.process.send_command(who, command))
    }

    /// Sends a command to the thread `who`, and waits for the answer.
    pub(crate) async fn ask(&self, who: &str, command: impl Display) -> Result<String> {
        self.tell(who, command).within(SOON).await
    }

    /// [`ask`](Self::ask) for long work that returns a number.
    pub(crate) async fn count(&self, who: &str, command: impl Display) -> Result<i64> {
        let counted = self.tell(who, command).within(TEST_TIMEOUT).await?;
        counted.parse().with_context(|| counted)
    }

    /// [`ask`](Self::ask) with an expected answer.
    pub(crate) async fn must(&self, who: &str, command: impl Display, answer: impl Display) -> Result<()> {
        let command = command.to_string();
        let got = self.ask(who, &command).await?;
        ensure!(got == answer.to_string(), "{}'s `{command}` came to {got}, not to {answer}", self.library);
        Ok(())
    }

    /// A round trip to the server, in an idle thread.
    pub(crate) async fn round_trip(&self) -> Result<()> {
        self.ask("bystander", "ping").await.map(drop)
    }
}

impl Pending {
    /// Checks that the answer has not come yet.
    pub(crate) fn ensure_pending(&mut self) -> Result<()> {
        match self.0.take_if_ready() {
            None => Ok(()),
            Some(came) => bail!("went on: {came:?}"),
        }
    }

    pub(crate) async fn within(self, limit: Duration) -> Result<String> {
        Ok(self.0.wait_at_most(limit).await?)
    }
}
