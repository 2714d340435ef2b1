//! Faults that a replay, or an experiment of the course, orders from a lab: a process that stops, a server that dies, a
//! session that ends, a replica that is promoted.
//!
//! 1. The lab tells its instances where it takes orders (`replays.lab`). An instance that no lab has started has none to give.
//! 2. What undoes an order is noted before it is sent, and is done at the end, however the replay or the experiment goes.
//!
//! **What it cannot do**: outlive the process that gives the orders. One that is killed meanwhile leaves broken what it has
//! broken.
//!
//! Next: `play.rs`.

use crate::bilingual::Bilingual;
use crate::{
    config::Config,
    fault::{Action, Breakable, FaultCommand},
    http_client::{Ask, HttpError, client},
};
use parking_lot::Mutex;
use secrecy::SecretString;
use std::time::Duration;

/// Longer than any server takes to start, and any replica to be promoted.
const FAULT_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a lab may take to say how it is: it may be carrying out an order.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// A lab, where it takes orders.
#[derive(Debug, Clone)]
pub struct Control {
    url: String,
    token: SecretString,
}

impl Control {
    /// The lab at this address, which takes orders that carry this token.
    #[must_use]
    pub const fn new(url: String, token: SecretString) -> Self {
        Self { url, token }
    }

    /// The lab that has started this instance: the one that the configuration names.
    #[must_use]
    pub fn of(config: &Config) -> Option<Self> {
        let replays = &config.replays;
        (!replays.lab.is_empty()).then(|| Self::new(replays.lab.clone(), replays.lab_token.clone()))
    }

    /// Has an order carried out; what the lab says of it.
    ///
    /// # Errors
    ///
    /// [`HttpError::Refused`]: the lab has no such member, or it is not in a state for this.
    pub async fn inject(&self, command: &FaultCommand) -> Result<String, HttpError> {
        let ordered = client().put(&self.url).json(command).timeout(FAULT_TIMEOUT);
        let done = ordered.token(Some(&self.token)).answer().await?;
        Ok(done.success()?.text())
    }

    /// What there is to break, and how it is.
    ///
    /// # Errors
    ///
    /// [`HttpError`]: the lab does not answer.
    pub async fn breakable(&self) -> Result<Breakable, HttpError> {
        let asked = client().get(&self.url).timeout(STATUS_TIMEOUT);
        let seen = asked.token(Some(&self.token)).answer().await?;
        seen.success()?.json()
    }
}

/// What a replay needs of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// That it takes orders.
    Lab,
    /// Ways that can be cut.
    Links,
    /// A replica that can be promoted.
    Replica,
    /// Five nodes of Redis.
    Nodes,
    /// Nodes of Redis whose clock can jump.
    Clocks,
}

impl Need {
    /// Why there is none of it here.
    pub(super) fn missing(self, config: &Config) -> Option<Bilingual> {
        let has = |kind: &str| config.replays.lab_kinds.iter().any(|has| has == kind);
        let (is_there, why) = match self {
            Self::Lab => (
                !config.replays.lab.is_empty(),
                Bilingual::of(
                    "要停进程、停服务器：只在 oversell lab 里能演",
                    "processes and servers are stopped in it: only a lab (`oversell lab`) plays it",
                ),
            ),
            Self::Links => (
                has("ways"),
                Bilingual::of(
                    "要能断开网络：用 oversell lab --ways 启动",
                    "ways are cut in it: it takes a lab started with --ways",
                ),
            ),
            Self::Replica => (
                has("replica"),
                Bilingual::of(
                    "要有从节点和哨兵：用 oversell lab --replica 启动",
                    "it takes a replica and a Sentinel: a lab started with --replica",
                ),
            ),
            Self::Nodes => (
                config.redis.nodes.len() >= 5,
                Bilingual::of("要有五个 Redis 节点", "it takes five nodes of Redis"),
            ),
            Self::Clocks => (
                has("clocks"),
                Bilingual::of(
                    "要能拨动 Redis 节点的时钟：装上 libfaketime，用 oversell lab --ways 启动",
                    "the clock of a Redis node jumps in it: it takes libfaketime and a lab started with --ways",
                ),
            ),
        };
        (!is_there).then_some(why)
    }
}

/// The faults that were ordered from a lab, and what is to be undone of them.
#[derive(Debug)]
pub struct Faults {
    lab: Control,
    undo: Mutex<Vec<(Action, String)>>,
}

impl Faults {
    /// None yet.
    #[must_use]
    pub fn new(lab: Control) -> Self {
        let undo = Mutex::default();
        Self { lab, undo }
    }

    /// Orders a fault. [`mend_all`](Self::mend_all) undoes it, unless it is undone by another order.
    ///
    /// # Errors
    ///
    /// As [`Control::inject`].
    ///
    /// # Cancel safety
    ///
    /// What undoes the fault is noted already: [`mend_all`](Self::mend_all) does it.
    pub async fn inject(&self, action: Action, member: &str) -> Result<(), HttpError> {
        self.inject_by(action, member, Duration::ZERO).await
    }

    /// The same, of what happens by so much: a clock that jumps.
    ///
    /// # Errors
    ///
    /// As [`Control::inject`].
    ///
    /// # Cancel safety
    ///
    /// As [`inject`](Self::inject).
    pub async fn inject_by(
        &self,
        action: Action,
        member: &str,
        by: Duration,
    ) -> Result<(), HttpError> {
        if let Some(undone) = action.undone_by() {
            self.inject_at_end(undone, member);
        }
        let command = FaultCommand {
            action,
            member: member.to_owned(),
            by_ms: u64::try_from(by.as_millis()).unwrap_or(u64::MAX),
        };
        self.lab.inject(&command).await?;
        let mut undo = self.undo.lock();
        undo.retain(|(undoes, whose)| *undoes != action || whose != member);
        Ok(())
    }

    /// Has this done at the end.
    pub(super) fn inject_at_end(&self, action: Action, member: &str) {
        self.undo.lock().push((action, member.to_owned()));
    }

    /// Undoes what is not undone yet, the last first; whether there was anything. An error says which member stays broken.
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
