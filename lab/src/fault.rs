//! Faults that a lab can inject, and what it can inject them into: for `oversell lab fault`, replays and the page.

use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};
use utoipa::ToSchema;

/// How long the lab's answer to one fault is waited for: longer than a server takes to start, or a replica to be promoted.
pub const FAULT_TIMEOUT: Duration = Duration::from_secs(90);

/// A fault, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// SIGSTOP: it holds what it holds and does nothing
    Pause,
    /// SIGCONT: it goes on
    Resume,
    /// SIGKILL: it is gone at once
    Kill,
    /// Starts one that does not run, on its port and with its data
    Start,
    /// Closes the connections of a way, and refuses new ones
    Cut,
    /// Lets answers come later on a way
    Slow,
    /// Lets the clock of a Redis node jump forward
    Jump,
    /// Makes a way, or a clock, as it was
    Mend,
    /// Ends the ZooKeeper session of an instance
    Expire,
    /// Makes the replica the main Redis, or the first one again
    Promote,
}

impl Action {
    /// The action that undoes it; `None` for `Expire` and `Promote`, and for those that undo another.
    pub const fn undone_by(self) -> Option<Self> {
        match self {
            Self::Pause => Some(Self::Resume),
            Self::Kill => Some(Self::Start),
            Self::Cut | Self::Slow | Self::Jump => Some(Self::Mend),
            _ => None,
        }
    }

    /// The milliseconds of a fault that names none: a clock jumps by a minute, beyond every lease of the course; an answer is
    /// delayed by 200 ms. Other actions make no use of it.
    pub const fn default_by_ms(self) -> u64 {
        match self {
            Self::Jump => 60_000,
            _ => 200,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A command to a lab: this action on this member or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultCommand {
    pub action: Action,
    /// The affected member or link.
    pub member: String,
    /// The delay, or the jump of a clock, in milliseconds; other actions ignore it.
    pub by_ms: u64,
}

/// The members and links of a lab, and their states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breakable {
    /// Servers and instances.
    pub members: Vec<Member>,
    /// The links from instances to servers, if the lab has them, and that of the replica to the main Redis.
    pub links: Vec<Link>,
    /// Where phones reach the page, in a lab for a class (`--lan`) that is in a network.
    #[schema(example = "http://192.168.1.5:8080")]
    pub phones: Option<String>,
}

/// A server or an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    #[schema(example = "8100")]
    pub name: String,
    pub instance: bool,
    pub state: MemberState,
    /// The actions that are possible now.
    #[schema(example = json!(["pause", "kill"]))]
    pub can: Vec<Action>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    Running,
    /// Stopped by SIGSTOP, with all that it holds.
    Paused,
    Killed,
}

/// A link from an instance, or from the replica, to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    #[schema(example = "8100-redis")]
    pub name: String,
    #[schema(example = "8100")]
    pub instance: String,
    #[schema(example = "redis")]
    pub server: String,
    pub state: LinkState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    Open,
    Cut,
    Slow,
}
