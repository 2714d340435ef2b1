//! The faults that a replay, or an experiment of the course, asks its lab for: a paused process, a killed server, an
//! ended session, a promoted replica.
//!
//! 1. The lab tells its instances the address of its control route (`replays.lab`). Without a lab there are no faults.
//! 2. What undoes a fault is noted before the fault is injected, and done at the end, even if the replay fails.
//!
//! **What it cannot do**: undo anything after this process was killed.
//!
//! Next: `lab/fault.rs`, which carries them out.

use crate::config::Config;
use oversell_lab::{
    clients::http_client::{Ask, HttpError, client},
    fault::{Action, Breakable, FAULT_TIMEOUT, FaultCommand},
    terminal::bilingual::Bilingual,
};
use parking_lot::Mutex;
use secrecy::SecretString;
use std::time::Duration;

/// Time limit of the lab's answer on its members: a lab that is injecting a fault answers late.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of a lab's control route, and the token for it.
#[derive(Debug, Clone)]
pub struct LabControl {
    url: String,
    token: SecretString,
}

impl LabControl {
    pub const fn new(url: String, token: SecretString) -> Self {
        Self { url, token }
    }

    /// The lab that has started this instance; `None` without one.
    pub fn from_config(config: &Config) -> Option<Self> {
        let replays = &config.replays;
        (!replays.lab.is_empty()).then(|| Self::new(replays.lab.clone(), replays.lab_token.clone()))
    }

    /// Injects a fault. Returns what the lab says of it; [`HttpError::Refused`] if the lab has no such member, or its
    /// state does not allow the fault.
    pub async fn inject(&self, command: &FaultCommand) -> Result<String, HttpError> {
        let ordered = client().put(&self.url).json(command).timeout(FAULT_TIMEOUT);
        let done = ordered.token(Some(&self.token)).answer().await?;
        Ok(done.success()?.text())
    }

    /// The members that the lab can break.
    pub async fn breakable(&self) -> Result<Breakable, HttpError> {
        let asked = client().get(&self.url).timeout(STATUS_TIMEOUT);
        let seen = asked.token(Some(&self.token)).answer().await?;
        seen.success()?.json()
    }
}

/// What a race needs of a lab. Of several that are missing, only the last is named: a lab for it has the earlier ones too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Lab,
    /// etcd.
    Etcd,
    /// Five Redis nodes.
    Nodes,
    /// Links that can be cut.
    Links,
    /// Redis nodes whose clocks can jump.
    Clocks,
    /// A replica that can be promoted.
    Replica,
}

impl Need {
    /// What this instance lacks for the need; `None` if it lacks nothing.
    pub(super) fn what_is_missing(self, config: &Config) -> Option<Bilingual> {
        let has = |kind: &str| config.replays.lab_kinds.iter().any(|has| has == kind);
        let (is_there, why) = match self {
            Self::Lab => (
                !config.replays.lab.is_empty(),
                Bilingual::of(
                    "要停进程、停服务器：用 make lab（或 oversell lab）启动服务器才能演",
                    "this race stops processes and servers, and needs a lab: start the servers with `make lab` (or `oversell lab`)",
                ),
            ),
            Self::Etcd => (
                !config.etcd.endpoints.is_empty(),
                Bilingual::of(
                    "要有 etcd：按 Ctrl-C 停下实验环境，装上 Debian 软件包 etcd-server，再输入 make lab LAB='--etcd 1'（或 oversell lab 加这个选项）",
                    "this race needs etcd: end the lab with Ctrl-C, install the Debian package etcd-server, and type make lab LAB='--etcd 1' (or oversell lab with this option)",
                ),
            ),
            Self::Links => (
                has("links"),
                Bilingual::of(
                    "要能断开网络：按 Ctrl-C 停下实验环境，再输入 make lab LAB='--links --replica'（或 oversell lab 加这两个选项）",
                    "this race cuts links: end the lab with Ctrl-C, and type make lab LAB='--links --replica' (or oversell lab with these two options)",
                ),
            ),
            Self::Replica => (
                has("replica"),
                Bilingual::of(
                    "要有从节点和 Sentinel：按 Ctrl-C 停下实验环境，再输入 make lab LAB='--links --replica'（或 oversell lab 加这两个选项）",
                    "this race needs a replica and a Sentinel: end the lab with Ctrl-C, and type make lab LAB='--links --replica' (or oversell lab with these two options)",
                ),
            ),
            Self::Nodes => (
                config.redis.nodes.len() >= 5,
                Bilingual::of(
                    "要有五个 Redis 节点：用 make lab（或 oversell lab）启动，或在 redis.nodes 里写上",
                    "this race needs five Redis nodes: start the servers with `make lab` (or `oversell lab`), or set redis.nodes",
                ),
            ),
            Self::Clocks => (
                has("clocks"),
                Bilingual::of(
                    "要能拨动 Redis 节点的时钟：用 oversell lab --links 启动，它启动时会说这个 Redis 行不行",
                    "the clock of a Redis node jumps in this race: start the lab with --links; it says at its start whether its Redis can",
                ),
            ),
        };
        (!is_there).then_some(why)
    }
}

/// The faults that a replay has injected by its lab, and what undoes each of them. Dropping this undoes nothing.
#[derive(Debug)]
pub struct Faults {
    lab: LabControl,
    undo: Mutex<Vec<(Action, String)>>,
}

impl Faults {
    pub fn new(lab: LabControl) -> Self {
        let undo = Mutex::default();
        Self { lab, undo }
    }

    /// Injects a fault. If it [can be undone](Action::undone_by), [`mend_all`](Self::mend_all) undoes it, unless another fault
    /// does so before. A fault that failed or was cancelled is undone too.
    pub async fn inject(&self, action: Action, member: &str) -> Result<(), HttpError> {
        self.inject_sized(action, member, Duration::ZERO).await
    }

    /// As [`inject`](Self::inject), with a size: that of a jump of a clock, or a delay.
    pub async fn inject_sized(&self, action: Action, member: &str, by: Duration) -> Result<(), HttpError> {
        self.note_undo(action, member);
        let command =
            FaultCommand { action, member: member.to_owned(), by_ms: u64::try_from(by.as_millis()).unwrap_or(u64::MAX) };
        self.lab.inject(&command).await?;
        self.note_done(action, member);
        Ok(())
    }

    /// Notes before a fault is injected what undoes it at the end.
    pub fn note_undo(&self, action: Action, member: &str) {
        if let Some(undone) = action.undone_by() {
            self.inject_at_end(undone, member);
        }
    }

    /// Notes that a fault was injected. A fault that undoes an earlier one ends that note.
    pub fn note_done(&self, action: Action, member: &str) {
        let mut undo = self.undo.lock();
        undo.retain(|(undoes, whose)| *undoes != action || whose != member);
    }

    /// Injects this at the end, even if the replay fails.
    pub(super) fn inject_at_end(&self, action: Action, member: &str) {
        self.undo.lock().push((action, member.to_owned()));
    }

    /// Undoes and forgets all faults, the last one first. Returns whether there were any. `failed` gets what stays broken.
    pub async fn mend_all(&self, failed: impl Fn(&str, HttpError)) -> bool {
        let left = std::mem::take(&mut *self.undo.lock());
        for (action, member) in left.iter().rev() {
            if let Err(error) = self.inject(*action, member).await {
                failed(member, error);
            }
        }
        !left.is_empty()
    }
}
