//! A process that takes its locks with somebody else's library (`interop/`), as the tests talk to it.

use super::support::{Context, HANGS, Result, SOON, bail, ensure};
use oversell::clients::peer::{Java, Peer as Process, Pending as Answer};
use std::{
    fmt::{self, Display},
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::process::Command;

/// Whose locks the process takes; `make interop` builds these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// In this version.
    Redisson(&'static str),
    Curator,
    Kazoo,
}

impl Library {
    /// The Redisson whose format ours is, and the newest.
    pub(crate) const ALL: [Self; 4] = [
        Self::Redisson("3.13.6"),
        Self::Redisson("4.7.0"),
        Self::Curator,
        Self::Kazoo,
    ];

    /// The folder of what is built, and the program that is run from there; `None` where it is not built.
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
        };
        let java = Java { library, version };
        let built = (java.folder(&interop), java.program(&interop));
        java.is_built(&interop).then_some(built)
    }
}

impl Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redisson(version) => write!(f, "redisson-{version}"),
            Self::Curator => f.write_str("curator"),
            Self::Kazoo => f.write_str("kazoo"),
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

/// An answer that has not come yet.
pub(crate) struct Pending(Answer);

impl Peer {
    /// Starts it, with `log` as the name of its log beside what was built; it answers once it has connected. Redisson's watchdog
    /// keeps a lock for so long, or as it does by itself.
    pub(crate) async fn start(
        library: Library,
        log: &str,
        server: &str,
        watchdog: Option<Duration>,
    ) -> Result<Self> {
        let not_built = || format!("{library} is not built: run `make interop`");
        let (folder, mut program) = library.built().with_context(not_built)?;
        let watchdog = watchdog.map(|lease| lease.as_millis().to_string());
        program
            .arg(server)
            .envs(watchdog.map(|ms| ("WATCHDOG_MS", ms)));
        let log = folder.join(format!("{log}.log"));
        let process = Process::start(library, program, &log).await?;
        Ok(Self { library, process })
    }

    /// Tells the thread `who` what to do, and does not wait for it.
    pub(crate) fn tell(&self, who: &str, command: impl Display) -> Pending {
        Pending(self.process.tell(who, command))
    }

    /// Tells the thread `who` what to do, and waits for the answer.
    pub(crate) async fn ask(&self, who: &str, command: impl Display) -> Result<String> {
        self.tell(who, command).within(SOON).await
    }

    /// [`ask`](Self::ask), for work that takes as long as a test may, and comes to a number.
    pub(crate) async fn count(&self, who: &str, command: impl Display) -> Result<i64> {
        let counted = self.tell(who, command).within(HANGS).await?;
        counted.parse().with_context(|| counted)
    }

    /// [`ask`](Self::ask), where only one answer will do.
    pub(crate) async fn must(
        &self,
        who: &str,
        command: impl Display,
        answer: impl Display,
    ) -> Result<()> {
        let command = command.to_string();
        let got = self.ask(who, &command).await?;
        ensure!(
            got == answer.to_string(),
            "{}'s `{command}` came to {got}, not to {answer}",
            self.library
        );
        Ok(())
    }

    /// To the server and back, in a thread that does nothing else.
    pub(crate) async fn round_trip(&self) -> Result<()> {
        self.ask("bystander", "ping").await.map(drop)
    }
}

impl Pending {
    /// That the answer has not come by now.
    pub(crate) fn is_open(&mut self) -> Result<()> {
        match self.0.now() {
            None => Ok(()),
            Some(came) => bail!("went on: {came:?}"),
        }
    }

    pub(crate) async fn within(self, limit: Duration) -> Result<String> {
        Ok(self.0.within(limit).await?)
    }
}
