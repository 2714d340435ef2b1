//! Faults that a replay orders from the lab that has started its instance: a process that stops, a server that dies, a session
//! that ends, a replica that is promoted.
//!
//! 1. The lab tells its instances where it takes orders (`replays.lab`). An instance that no lab has started has none to give.
//! 2. What undoes an order is noted before it is sent, and is done at the end of the replay, however that goes.
//!
//! **What it cannot do**: outlive the instance that directs: one that is killed meanwhile leaves what it has broken.
//!
//! Next: `play.rs`.

use crate::bilingual::Bilingual;
use crate::{
    config::Config,
    ctx::Ctx,
    error::Error,
    http_client::{Ask, HttpError, client},
    orders::{Action, Breakable, Order},
};
use parking_lot::Mutex;
use secrecy::SecretString;
use std::time::Duration;

/// Longer than any server takes to start, and any replica to be promoted.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a lab may take to say how it is: it may be carrying out an order.
const LOOK: Duration = Duration::from_secs(5);

/// The lab that has started this instance, where it takes orders.
#[derive(Debug, Clone)]
pub struct Control {
    url: String,
    token: SecretString,
}

impl Control {
    /// The one that the configuration names.
    #[must_use]
    pub fn of(config: &Config) -> Option<Self> {
        let replays = &config.replays;
        (!replays.lab.is_empty()).then(|| Self {
            url: replays.lab.clone(),
            token: replays.lab_token.clone(),
        })
    }

    /// Has an order carried out; what the lab says of it.
    ///
    /// # Errors
    ///
    /// [`HttpError::Refused`]: the lab has no such member, or it is not in a state for this.
    pub async fn order(&self, order: &Order) -> Result<String, HttpError> {
        let ordered = client().put(&self.url).json(order).timeout(PATIENCE);
        let done = ordered.token(Some(&self.token)).answer().await?;
        Ok(done.success()?.text())
    }

    /// What there is to break, and how it is.
    ///
    /// # Errors
    ///
    /// [`HttpError`]: the lab does not answer.
    pub async fn look(&self) -> Result<Breakable, HttpError> {
        let asked = client().get(&self.url).timeout(LOOK);
        let seen = asked.token(Some(&self.token)).answer().await?;
        seen.success()?.json()
    }
}

/// What a replay needs of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// That it takes orders.
    Orders,
    /// Ways that can be cut.
    Ways,
    /// A replica that can be promoted.
    Replica,
    /// Five nodes of Redis.
    Nodes,
}

impl Need {
    /// Why there is none of it here.
    pub(super) fn missing(self, config: &Config) -> Option<Bilingual> {
        let has = |kind: &str| config.replays.lab_kinds.iter().any(|has| has == kind);
        let (is_there, why) = match self {
            Self::Orders => (
                !config.replays.lab.is_empty(),
                Bilingual {
                    zh: "要停进程、停服务器：只在 oversell lab 里能演",
                    en: "processes and servers are stopped in it: only a lab (`oversell lab`) plays it",
                },
            ),
            Self::Ways => (
                has("ways"),
                Bilingual {
                    zh: "要能断开网络：用 oversell lab --ways 启动",
                    en: "ways are cut in it: it takes a lab started with --ways",
                },
            ),
            Self::Replica => (
                has("replica"),
                Bilingual {
                    zh: "要有从库和哨兵：用 oversell lab --replica 启动",
                    en: "it takes a replica and a Sentinel: a lab started with --replica",
                },
            ),
            Self::Nodes => (
                config.redis.nodes.len() >= 5,
                Bilingual {
                    zh: "要有五个 Redis 节点",
                    en: "it takes five nodes of Redis",
                },
            ),
        };
        (!is_there).then_some(why)
    }
}

/// The lab, and what is to be undone.
pub(super) struct Faults {
    lab: Option<Control>,
    has_ways: bool,
    undo: Mutex<Vec<(Action, String)>>,
}

impl Faults {
    pub(super) fn of(ctx: &Ctx) -> Self {
        let lab = Control::of(&ctx.config);
        let has_ways = lab.is_some()
            && ctx
                .config
                .replays
                .lab_kinds
                .iter()
                .any(|kind| kind == "ways");
        Self {
            lab,
            has_ways,
            undo: Mutex::default(),
        }
    }

    /// Whether there is a lab that takes orders.
    pub(super) fn are_there(&self) -> bool {
        self.lab.is_some()
    }

    /// Whether it can end a session at once.
    pub(super) fn has_ways(&self) -> bool {
        self.has_ways
    }

    /// Orders a fault. It is undone at the end, unless the replay does so itself.
    pub(super) async fn order(&self, action: Action, member: &str) -> Result<(), Error> {
        let lab = self
            .lab
            .as_ref()
            .ok_or_else(|| Error::replay("no lab takes orders"))?;
        self.undo
            .lock()
            .extend(action.undone_by().map(|undone| (undone, member.to_owned())));
        let done = lab
            .order(&Order {
                action,
                member: member.to_owned(),
                by_ms: 0,
            })
            .await;
        done.map_err(|error| Error::replay(format!("{action} {member}: {error}")))?;
        self.undo
            .lock()
            .retain(|(undoes, whose)| *undoes != action || whose != member);
        Ok(())
    }

    /// Has this done at the end.
    pub(super) fn at_the_end(&self, action: Action, member: &str) {
        self.undo.lock().push((action, member.to_owned()));
    }

    /// Undoes what is not undone yet, the last first; whether there was anything.
    pub(super) async fn mend(&self) -> bool {
        let left = std::mem::take(&mut *self.undo.lock());
        for (action, member) in left.iter().rev() {
            if let Err(error) = self.order(*action, member).await {
                tracing::error!(%error, "a replay leaves what it has broken");
            }
        }
        !left.is_empty()
    }
}
