//! What the lab needs to know about a server, whichever it is; what it keeps about each that it has; and waiting until it is
//! well, by asking it.

use super::{
    process::{Console, Process, Start},
    programs::Needed,
    user::User,
};
use crate::{
    failure::Failure,
    http_client::{Answer, HttpClient},
    orders::MemberState,
};
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use std::{fmt::Debug, fs, io, path::Path, process::Command, time::Duration};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep, timeout},
};

/// Longer than any server takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(60);
/// One question; a server that accepts and says nothing is asked again.
const ANSWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

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

    /// The settings that stand in its folder, by their places in it.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Fills the folder before the first start. `user` writes in it.
    fn prepare(&self, user: User) -> BoxFuture<'_, Result<(), Failure>> {
        let write = || {
            user.make(self.folder())?;
            for (place, text) in self.settings() {
                let file = self.folder().join(place);
                file.parent().map_or(Ok(()), |folder| user.make(folder))?;
                fs::write(&file, text)?;
                user.own(&file)?;
            }
            Ok(())
        };
        let failed = |e: io::Error| Failure::Unusable(format!("{}: {e}", self.name()));
        ready(write().map_err(failed)).boxed()
    }

    /// The command that is the server: it stays in the foreground.
    fn command(&self, user: User) -> Command;

    /// Whether its stdout is a console, for the user to see, and not part of its log.
    fn has_console(&self) -> bool {
        false
    }

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

/// What all members of a lab have in common.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) user: User,
    /// Where the instances' consoles go.
    pub(super) console: Option<UnboundedSender<String>>,
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
        Self {
            server: Box::new(server),
            tier,
            wanted,
            process: None,
            prepared: false,
        }
    }

    /// Starts it and waits until it is well.
    pub(super) async fn start(&mut self, complete: bool, setting: &Setting) -> Result<(), Failure> {
        if !self.prepared {
            self.server.prepare(setting.user).await?;
            self.prepared = true;
        }
        let log = self.server.folder().with_extension("log");
        let process = Process::spawn(Start {
            name: &self.server.title(),
            command: &self.server.command(setting.user),
            orphaned: self.server.orphaned(),
            user: setting.user,
            log: &log,
            console: setting
                .console
                .as_ref()
                .filter(|_| self.server.has_console())
                .map(|lines| {
                    let (name, lines) = (self.server.name().to_owned(), lines.clone());
                    // A dropped receiver needs no line.
                    Box::new(move |line| drop(lines.send(format!("{name} | {line}")))) as Console
                }),
        })?;
        let process = self.process.insert(process);
        until_well(self.server.as_ref(), process, complete).await
    }

    /// Its pid, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().filter(|p| p.runs()).map(Process::pid)
    }

    /// How it is.
    pub(super) fn state(&self) -> MemberState {
        match self.process.as_ref().filter(|p| p.runs()) {
            None => MemberState::Killed,
            Some(process) if process.stands_still() => MemberState::Paused,
            Some(_) => MemberState::Running,
        }
    }

    /// Its process, which must run.
    pub(super) fn running(&self) -> Result<&Process, Failure> {
        self.process
            .as_ref()
            .filter(|p| p.runs())
            .ok_or_else(|| Failure::Unusable(format!("{} is not running", self.server.title())))
    }
}

/// Asks until the server is well.
///
/// # Errors
///
/// It ended, or is not well in time: with its last answer and the end of its log.
async fn until_well(server: &dyn Server, process: &Process, complete: bool) -> Result<(), Failure> {
    let name = server.title();
    let begin = Instant::now();
    loop {
        let check = timeout(ANSWER, server.check(process.pid(), complete));
        let reason = tokio::select! {
            end = process.gone() => {
                return Err(Failure::Unusable(format!("{name} ended at its start ({end}); {}", process.tail())));
            }
            answer = check => match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(reason)) => reason,
                Err(_) => "no answer".to_owned(),
            },
        };
        if begin.elapsed() > LIMIT {
            let limit = LIMIT.as_secs();
            return Err(Failure::Unusable(format!(
                "{name} is not healthy after {limit} s ({reason}); {}",
                process.tail()
            )));
        }
        sleep(PAUSE).await;
    }
}

/// A GET on loopback.
pub(super) async fn get(port: u16, path: &str) -> Result<Answer, String> {
    HttpClient::new(ANSWER)
        .get(&format!("http://127.0.0.1:{port}{path}"))
        .await
        .map_err(|e| e.to_string())
}
