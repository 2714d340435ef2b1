//! What the lab needs to know about a server, whichever it is, and what it keeps about each that it has.

use super::{health, process::Process, programs::Needed};
use crate::failure::Failure;
use futures::future::BoxFuture;
use std::{fmt::Debug, path::Path, process::Command};

/// How one server is started, and how it is asked whether it is well.
pub(super) trait Server: Debug + Send + Sync {
    /// Its name in this lab.
    fn name(&self) -> &str;

    /// What messages call it.
    fn title(&self) -> String {
        self.name().to_owned()
    }

    /// The programs that it cannot do without.
    fn needs(&self) -> &'static [Needed];

    /// Its own folder.
    fn folder(&self) -> &Path;

    /// Fills the folder before the first start: settings, an empty database.
    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// The command that is the server: it stays in the foreground.
    fn command(&self) -> Command;

    /// The signal that it gets from the system if the lab dies without stopping it.
    fn orphaned(&self) -> &'static str {
        "KILL"
    }

    /// Asks it whether it is well and whether it is the process `pid` that we started, not another that happens to
    /// listen there. `complete`: the servers that it stands on, or the majority that it belongs to, are up.
    fn check(&self, pid: u32, complete: bool) -> BoxFuture<'_, Result<(), String>>;
}

/// The order of starting; stopping goes the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// MySQL, Redis, ZooKeeper.
    Server,
    /// The service.
    Instance,
    /// nginx.
    Gate,
}

/// A server of this lab, and its process once it has been started.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) server: Box<dyn Server>,
    pub(super) tier: Tier,
    /// Started with the lab.
    pub(super) wanted: bool,
    pub(super) process: Option<Process>,
    prepared: bool,
}

impl Member {
    pub(super) fn new(server: impl Server + 'static, tier: Tier, wanted: bool) -> Self {
        Self { server: Box::new(server), tier, wanted, process: None, prepared: false }
    }

    /// Starts it and waits until it is well.
    pub(super) async fn start(&mut self, complete: bool) -> Result<(), Failure> {
        if !self.prepared {
            self.server.prepare().await?;
            self.prepared = true;
        }
        let log = self.server.folder().with_extension("log");
        let process = Process::spawn(&self.server.title(), &self.server.command(), self.server.orphaned(), &log)?;
        let process = self.process.insert(process);
        health::until_well(self.server.as_ref(), process, complete).await
    }

    /// Its pid, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().filter(|p| p.runs()).map(Process::pid)
    }

    /// Its process, which must run.
    pub(super) fn running(&self) -> Result<&Process, Failure> {
        self.process
            .as_ref()
            .filter(|p| p.runs())
            .ok_or_else(|| Failure::Unusable(format!("{} is not running", self.server.title())))
    }
}
