//! What the lab knows about each server: how to start it, how to check its health, and its process.

use super::{
    folder::Folder,
    process::{ConsoleLineHandler, Process, ProcessSpec},
    user::User,
};
use crate::{
    clients::http_client::{Ask, client},
    fault::MemberState,
    programs::Requirement,
    terminal::{
        chinese::localized,
        failure::{Failure, unusable, unusable_localized},
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

/// Time limit of a start: longer than any server takes on a slow machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of one health check. A server that accepts a connection and does not answer is asked again.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a starting server is checked: short beside any start.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The name of the server at `index`: `redis`, `redis-2` …
pub(super) fn numbered_name(name: &str, index: usize) -> String {
    match index {
        0 => name.to_owned(),
        _ => format!("{name}-{}", index + 1),
    }
}

/// Whether this is one of the [numbered names](numbered_name) of `base`.
pub(super) fn has_base_name(name: &str, base: &str) -> bool {
    name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// A program that the lab starts: its command, its files and its health. Implemented by each kind of server, by nginx and by
/// instances; `folder` is the server's own.
pub(super) trait Server: Debug + Send + Sync {
    /// The programs that it needs besides those whose paths are known, each with its Debian package.
    fn requirements(&self) -> &'static [Requirement];

    /// Configuration files, by their paths in the folder.
    fn config_files(&self, _folder: &Path) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Fills the folder before the first start. `user` will write in it.
    fn prepare<'a>(&'a self, folder: &'a Path, user: User) -> BoxFuture<'a, Result<(), Failure>> {
        let write = || {
            user.create_folder(folder)?;
            for (place, text) in self.config_files(folder) {
                let file = folder.join(place);
                file.parent().map_or(Ok(()), |folder| user.create_folder(folder))?;
                fs::write(&file, text)?;
                user.take_ownership(&file)?;
            }
            Ok(())
        };
        let failed = |e: io::Error| unusable!("{}: {e}", folder.display());
        ready(write().map_err(failed)).boxed()
    }

    /// The command of the server, in the foreground.
    fn command(&self, folder: &Path, user: User) -> Command;

    /// The signal for the server if the lab dies without stopping it.
    fn death_signal(&self) -> &'static str {
        "KILL"
    }

    /// Checks that the server is healthy, and that it is the one that was started, not another on the same port.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a>;
}

/// The result of a health check; the error says why the server is not healthy.
pub(super) type HealthCheck<'a> = BoxFuture<'a, Result<(), String>>;

/// Facts of the start that a health check needs.
#[derive(Clone, Copy)]
pub(super) struct CheckContext<'a> {
    pub(super) folder: &'a Path,
    pub(super) pid: u32,
    /// Whether the servers that it needs are up; if false, being alive is healthy enough.
    pub(super) dependencies_up: bool,
}

/// Which members start together: servers first, then instances, then nginx. Stopping goes the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// MySQL, Redis, ZooKeeper.
    Server,
    Instance,
    /// nginx.
    Gate,
}

/// The settings that all members of a lab share.
#[derive(Debug)]
pub(super) struct MemberSettings {
    pub(super) user: User,
    /// Receives the console lines of instances; `None`: their logs do.
    pub(super) console: Option<UnboundedSender<String>>,
}

/// A server or an instance of a lab, with its folder and, while it runs, its process.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) server: Box<dyn Server>,
    folder: PathBuf,
    pub(super) tier: Tier,
    pub(super) starts_with_lab: bool,
    pub(super) process: Option<Process>,
    prepared: bool,
}

impl Member {
    pub(super) fn new(lab: &Folder, name: &str, server: Box<dyn Server>, tier: Tier, starts_with_lab: bool) -> Self {
        let folder = match tier {
            Tier::Instance => lab.path_of(&format!("instance-{name}")),
            Tier::Server | Tier::Gate => lab.path_of(name),
        };
        Self { name: name.to_owned(), server, folder, tier, starts_with_lab, process: None, prepared: false }
    }

    /// The name for people, such as `instance 8100` or `redis`.
    pub(super) fn title(&self) -> String {
        match self.tier {
            Tier::Instance => localized!("实例 {}", "instance {}", self.name),
            Tier::Server | Tier::Gate => self.name.clone(),
        }
    }

    /// Prepares the folder at the first call, starts the server and waits until it is healthy. One that does not become healthy
    /// is left running. A process from before is killed.
    pub(super) async fn start(&mut self, dependencies_up: bool, settings: &MemberSettings) -> Result<(), Failure> {
        if !self.prepared {
            self.server.prepare(&self.folder, settings.user).await?;
            self.prepared = true;
        }
        let process = Process::spawn(ProcessSpec {
            name: &self.title(),
            command: &self.server.command(&self.folder, settings.user),
            death_signal: self.server.death_signal(),
            user: settings.user,
            log: &self.folder.with_extension("log"),
            console: settings.console.as_ref().filter(|_| self.tier == Tier::Instance).map(|lines| {
                let (name, lines) = (self.name.clone(), lines.clone());
                // The receiver may be gone.
                Box::new(move |line| drop(lines.send(format!("{name} | {line}")))) as ConsoleLineHandler
            }),
        })?;
        let title = self.title();
        let process = self.process.insert(process);
        let context = CheckContext { folder: &self.folder, pid: process.pid(), dependencies_up };
        wait_until_healthy(&title, process, || self.server.check_health(context)).await
    }

    /// The pid of its process; `None` if it does not run.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().filter(|p| p.is_running()).map(Process::pid)
    }

    /// Whether it runs, is stopped by a signal, or has no process or one that has ended, which count as killed.
    pub(super) fn state(&self) -> MemberState {
        match self.process.as_ref().filter(|p| p.is_running()) {
            None => MemberState::Killed,
            Some(process) if process.is_stopped() => MemberState::Paused,
            Some(_) => MemberState::Running,
        }
    }

    /// Its process; fails if it does not run.
    pub(super) fn running_process(&self) -> Result<&Process, Failure> {
        self.process.as_ref().filter(|p| p.is_running()).ok_or_else(|| unusable!("{} is not running", self.title()))
    }
}

/// Checks until the server is healthy. Fails if it exits, or after [`START_TIMEOUT`], with the reason and the end of its log.
async fn wait_until_healthy<'a>(name: &str, process: &Process, check: impl Fn() -> HealthCheck<'a>) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        let check = timeout(CHECK_TIMEOUT, check());
        let reason = tokio::select! {
            end = process.wait_until_gone() => {
                return Err(unusable_localized!(
                    "{name} 一启动就结束了（{end}）；{}",
                    "{name} ended at its start ({end}); {}",
                    process.log_tail()
                ));
            }
            answer = check => match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(reason)) => reason,
                Err(_) => "no answer".to_owned(),
            },
        };
        if begin.elapsed() > START_TIMEOUT {
            let limit = START_TIMEOUT.as_secs();
            return Err(unusable_localized!(
                "{name} 过了 {limit} 秒还不正常（{reason}）；{}",
                "{name} is not healthy after {limit} s ({reason}); {}",
                process.log_tail()
            ));
        }
        sleep(CHECK_INTERVAL).await;
    }
}

/// Checks that an instance with a name that `is_ours` answers a GET at this port, with 200; the error says what is wrong.
pub(super) async fn check_instance(port: u16, path: &str, is_ours: impl Fn(&str) -> bool) -> Result<(), String> {
    let request = client().get(format!("http://127.0.0.1:{port}{path}"));
    let answer = request.timeout(CHECK_TIMEOUT).answer().await;
    let answer = answer.map_err(|e| e.to_string())?;
    match answer.instance() {
        Some(name) if !is_ours(name) => Err(format!("instance {name} answers, which is not of this lab")),
        Some(_) if answer.status == StatusCode::OK => Ok(()),
        Some(_) => Err(format!("{path} says {}", answer.status)),
        None => Err("another server answers".to_owned()),
    }
}
