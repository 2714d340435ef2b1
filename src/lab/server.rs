//! What the lab needs to know about a server, whichever it is; what it keeps about each that it has; and waiting until it is
//! well, by asking it.

use super::{
    folder::Folder,
    process::{Console, Process, Start},
    user::User,
};
use crate::programs::Needed;
use crate::{
    clients::http_client::{Ask, client},
    fault::MemberState,
    terminal::{
        chinese::told,
        failure::{Failure, unusable, unusable_told},
    },
};
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use http::StatusCode;
use std::{
    fmt::Debug,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep, timeout},
};

/// Longer than any server takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(60);
/// One question; a server that accepts and says nothing is asked again.
const ANSWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// How one server is started, and how it is asked whether it is well. `folder` is its own.
pub(super) trait Server: Debug + Send + Sync {
    /// The programs that it cannot do without.
    fn needs(&self) -> &'static [Needed];

    /// The settings that stand in its folder, by their places in it.
    fn settings(&self, _folder: &Path) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Fills the folder before the first start. `user` writes in it.
    fn prepare<'a>(&'a self, folder: &'a Path, user: User) -> BoxFuture<'a, Result<(), Failure>> {
        let write = || {
            user.make(folder)?;
            for (place, text) in self.settings(folder) {
                let file = folder.join(place);
                file.parent().map_or(Ok(()), |folder| user.make(folder))?;
                fs::write(&file, text)?;
                user.own(&file)?;
            }
            Ok(())
        };
        let failed = |e: io::Error| unusable!("{}: {e}", folder.display());
        ready(write().map_err(failed)).boxed()
    }

    /// The command that is the server: it stays in the foreground.
    fn command(&self, folder: &Path, user: User) -> Command;

    /// The signal that it gets from the system if the lab dies without stopping it.
    fn orphaned(&self) -> &'static str {
        "KILL"
    }

    /// Asks it whether it is well and whether it is the one that was started, not another that happens to listen there.
    fn check<'a>(&'a self, started: Started<'a>) -> Check<'a>;
}

/// Whether a server is well; else why not.
pub(super) type Check<'a> = BoxFuture<'a, Result<(), String>>;

/// A server that was started, and is not well yet.
#[derive(Clone, Copy)]
pub(super) struct Started<'a> {
    pub(super) folder: &'a Path,
    pub(super) pid: u32,
    /// The servers that it stands on, or the majority that it belongs to, are up.
    pub(super) complete: bool,
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
    /// Its name in this lab.
    pub(super) name: String,
    pub(super) server: Box<dyn Server>,
    folder: PathBuf,
    pub(super) tier: Tier,
    /// Started with the lab.
    pub(super) wanted: bool,
    pub(super) process: Option<Process>,
    prepared: bool,
}

impl Member {
    pub(super) fn new(
        lab: &Folder,
        name: &str,
        server: Box<dyn Server>,
        tier: Tier,
        wanted: bool,
    ) -> Self {
        let folder = match tier {
            Tier::Instance => lab.of(&format!("instance-{name}")),
            Tier::Server | Tier::Gate => lab.of(name),
        };
        Self {
            name: name.to_owned(),
            server,
            folder,
            tier,
            wanted,
            process: None,
            prepared: false,
        }
    }

    /// What messages call it.
    pub(super) fn title(&self) -> String {
        match self.tier {
            Tier::Instance => told!("实例 {}", "instance {}", self.name),
            Tier::Server | Tier::Gate => self.name.clone(),
        }
    }

    /// Starts it and waits until it is well.
    pub(super) async fn start(&mut self, complete: bool, setting: &Setting) -> Result<(), Failure> {
        if !self.prepared {
            self.server.prepare(&self.folder, setting.user).await?;
            self.prepared = true;
        }
        let process = Process::spawn(Start {
            name: &self.title(),
            command: &self.server.command(&self.folder, setting.user),
            orphaned: self.server.orphaned(),
            user: setting.user,
            log: &self.folder.with_extension("log"),
            console: setting
                .console
                .as_ref()
                .filter(|_| self.tier == Tier::Instance)
                .map(|lines| {
                    let (name, lines) = (self.name.clone(), lines.clone());
                    // A dropped receiver needs no line.
                    Box::new(move |line| drop(lines.send(format!("{name} | {line}")))) as Console
                }),
        })?;
        let title = self.title();
        let process = self.process.insert(process);
        let started = Started {
            folder: &self.folder,
            pid: process.pid(),
            complete,
        };
        until_well(&title, process, || self.server.check(started)).await
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
            .ok_or_else(|| unusable!("{} is not running", self.title()))
    }
}

/// Asks until the server is well.
///
/// # Errors
///
/// It ended, or is not well in time: with its last answer and the end of its log.
async fn until_well<'a>(
    name: &str,
    process: &Process,
    check: impl Fn() -> Check<'a>,
) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        let check = timeout(ANSWER, check());
        let reason = tokio::select! {
            end = process.gone() => {
                return Err(unusable_told!(
                    "{name} 一启动就结束了（{end}）；{}",
                    "{name} ended at its start ({end}); {}",
                    process.tail()
                ));
            }
            answer = check => match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(reason)) => reason,
                Err(_) => "no answer".to_owned(),
            },
        };
        if begin.elapsed() > LIMIT {
            let limit = LIMIT.as_secs();
            return Err(unusable_told!(
                "{name} 过了 {limit} 秒还不正常（{reason}）；{}",
                "{name} is not healthy after {limit} s ({reason}); {}",
                process.tail()
            ));
        }
        sleep(PAUSE).await;
    }
}

/// Whether what answers a GET at this port of loopback is an instance that `is_ours`, and is well.
pub(super) async fn answers(
    port: u16,
    path: &str,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let asked = client().get(format!("http://127.0.0.1:{port}{path}"));
    let answer = asked.timeout(ANSWER).answer().await;
    let answer = answer.map_err(|e| e.to_string())?;
    match answer.instance() {
        Some(name) if !is_ours(name) => {
            Err(format!("instance {name} answers, which is none of ours"))
        }
        Some(_) if answer.status == StatusCode::OK => Ok(()),
        Some(_) => Err(format!("{path} says {}", answer.status)),
        None => Err("another server answers".to_owned()),
    }
}
