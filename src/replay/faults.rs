//! Faults that a replay orders from the lab that has started its instance: a process that stops, a server that dies, a session
//! that ends, a replica that is promoted.
//!
//! 1. The lab tells its instances where it takes orders (`replays.lab`). An instance that no lab has started has none to give.
//! 2. What undoes an order is noted before it is sent, and is done at the end of the replay, however that goes.
//!
//! **What it cannot do**: outlive the instance that directs: one that is killed meanwhile leaves what it has broken.
//!
//! Next: `play.rs`.

use super::play::gone_wrong;
use crate::{config::Config, ctx::Ctx, error::Error, http_client::HttpClient, stock::Title};
use parking_lot::Mutex;
use secrecy::SecretString;
use std::time::Duration;

/// Longer than any server takes to start, and any replica to be promoted.
const PATIENCE: Duration = Duration::from_secs(90);

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
    pub(super) fn missing(self, config: &Config) -> Option<Title> {
        let has = |kind: &str| config.replays.lab_kinds.iter().any(|has| has == kind);
        let (is_there, why) = match self {
            Self::Orders => (
                !config.replays.lab.is_empty(),
                Title {
                    zh: "要停进程、停服务器：只在 oversell lab 里能演",
                    en: "processes and servers are stopped in it: only a lab (`oversell lab`) plays it",
                },
            ),
            Self::Ways => (
                has("ways"),
                Title {
                    zh: "要能断开网络：用 oversell lab --ways 启动",
                    en: "ways are cut in it: it takes a lab started with --ways",
                },
            ),
            Self::Replica => (
                has("replica"),
                Title {
                    zh: "要有从库和哨兵：用 oversell lab --replica 启动",
                    en: "it takes a replica and a Sentinel: a lab started with --replica",
                },
            ),
            Self::Nodes => {
                (config.redis.nodes.len() >= 5, Title { zh: "要有五个 Redis 节点", en: "it takes five nodes of Redis" })
            }
        };
        (!is_there).then_some(why)
    }
}

/// The lab, and what is to be undone.
pub(super) struct Faults {
    lab: Option<(String, SecretString)>,
    has_ways: bool,
    client: HttpClient,
    undo: Mutex<Vec<[String; 2]>>,
}

impl Faults {
    pub(super) fn of(ctx: &Ctx) -> Self {
        let replays = &ctx.config.replays;
        let lab = (!replays.lab.is_empty()).then(|| (replays.lab.clone(), replays.lab_token.clone()));
        let has_ways = lab.is_some() && replays.lab_kinds.iter().any(|kind| kind == "ways");
        Self { lab, has_ways, client: HttpClient::new(PATIENCE), undo: Mutex::default() }
    }

    /// Whether there is a lab that takes orders.
    pub(super) fn are_there(&self) -> bool {
        self.lab.is_some()
    }

    /// Whether it can end a session at once.
    pub(super) fn has_ways(&self) -> bool {
        self.has_ways
    }

    /// Orders a fault: `order("pause", "8100")`. It is undone at the end, unless the replay does so itself.
    pub(super) async fn order(&self, action: &str, member: &str) -> Result<(), Error> {
        let (url, token) = self.lab.as_ref().ok_or_else(|| gone_wrong("no lab takes orders"))?;
        let undone = match action {
            "pause" => Some("resume"),
            "kill" => Some("start"),
            "cut" => Some("mend"),
            _ => None,
        };
        self.undo.lock().extend(undone.map(|undone| [undone.to_owned(), member.to_owned()]));
        let order = serde_json::json!({ "action": action, "member": member, "by_ms": 0 });
        let done = self.client.put(url, &order, Some(token)).await.and_then(|answer| answer.success());
        done.map_err(|error| gone_wrong(format!("{action} {member}: {error}")))?;
        self.undo.lock().retain(|[undoes, whose]| undoes != action || whose != member);
        Ok(())
    }

    /// Has this done at the end.
    pub(super) fn at_the_end(&self, action: &str, member: &str) {
        self.undo.lock().push([action.to_owned(), member.to_owned()]);
    }

    /// Undoes what is not undone yet, the last first; whether there was anything.
    pub(super) async fn mend(&self) -> bool {
        let left = std::mem::take(&mut *self.undo.lock());
        for [action, member] in left.iter().rev() {
            if let Err(error) = self.order(action, member).await {
                tracing::error!(%error, "a replay leaves what it has broken");
            }
        }
        !left.is_empty()
    }
}
