//! What a lab is ordered to break, and what there is to break in it: `oversell lab fault`, a replay and the page say it, the lab
//! does it.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// What can happen to a member, or to a way.
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
    /// What undoes it, where that is not left to time.
    #[must_use]
    pub const fn undone_by(self) -> Option<Self> {
        match self {
            Self::Pause => Some(Self::Resume),
            Self::Kill => Some(Self::Start),
            Self::Cut | Self::Slow | Self::Jump => Some(Self::Mend),
            _ => None,
        }
    }

    /// By how many milliseconds, where nothing is said: a clock jumps beyond every lease of the course, an answer comes this much
    /// later.
    pub(crate) const fn default_by_ms(self) -> u64 {
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

/// An order to a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultCommand {
    /// What is to happen.
    pub action: Action,
    /// The member or way that it happens to.
    pub member: String,
    /// For one that slows down, or whose clock jumps: by how much.
    pub by_ms: u64,
}

/// What there is to break, and how it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breakable {
    /// Servers and instances.
    pub members: Vec<Member>,
    /// The ways from instances to servers, in a lab that has some; and that from the replica to the main Redis.
    pub ways: Vec<Link>,
    /// Where phones reach the page, in a lab for a class (`--lan`) that is in a network.
    #[schema(example = "http://192.168.1.5:8080")]
    pub phones: Option<String>,
}

/// A server or an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// Its name.
    #[schema(example = "8100")]
    pub name: String,
    /// Whether it is an instance of the service.
    pub instance: bool,
    /// How it is.
    pub state: MemberState,
    /// What can be done to it now.
    #[schema(example = json!(["pause", "kill"]))]
    pub can: Vec<Action>,
}

/// How a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It runs.
    Running,
    /// It stands still, and holds what it holds.
    Paused,
    /// It does not run.
    Killed,
}

/// A way from one instance to one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Its name.
    #[schema(example = "8100-redis")]
    pub name: String,
    /// The instance that it is of.
    #[schema(example = "8100")]
    pub instance: String,
    /// Where it leads.
    #[schema(example = "redis")]
    pub server: String,
    /// How it is.
    pub state: LinkState,
}

/// How a way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// As it was.
    Open,
    /// Nothing comes through.
    Cut,
    /// Answers come later.
    Slow,
}
