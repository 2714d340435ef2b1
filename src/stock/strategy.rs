//! What a strategy is: a value that says what it promises, and the function that takes a piece.

use super::{Deducted, Job};
use crate::{ctx::Ctx, error::Error};
use futures::future::BoxFuture;
use serde::Serialize;
use utoipa::ToSchema;

/// Takes one piece, or says why not.
pub type Deduct = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Deducted, Error>>;

/// One way to take a piece of the stock.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub struct Strategy {
    /// Its name in routes, commands and figures.
    pub slug: &'static str,
    /// The place in the course: `1.7.1`, or `[002]` for a companion text.
    pub chapter: &'static str,
    /// Where the pieces that it takes are counted.
    pub store: Store,
    /// What it promises.
    pub promise: Promise,
    /// The servers that it cannot do without.
    pub needs: &'static [Server],
    /// How much a comparison sends to it, where nobody says.
    pub pace: Pace,
    /// What it is, in one line.
    pub title: Title,
    /// Where it breaks, in one line.
    pub breaks: Title,
    /// Its source file, for the page to show.
    #[serde(skip)]
    pub source: &'static str,
    /// Takes one piece.
    #[serde(skip)]
    pub deduct: Deduct,
}

/// A line in both languages of the page.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Title {
    /// Chinese.
    pub zh: &'static str,
    /// English.
    pub en: &'static str,
}

/// What a strategy promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Loses updates at all times.
    Unsafe,
    /// Exact in one instance only.
    OneProcess,
    /// Exact while no holder outlives its lease.
    Lease,
    /// Exact under every fault.
    Safe,
}

/// How much a comparison sends to a strategy, where nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// §1.4: 100 connections, 50 requests each.
    Course,
    /// 40 connections, 25 requests each. Every request that waits asks again every 50 ms, and all of them in step: one
    /// connection at a time gets in, and sends all of its requests before the next. So n connections take n × 50 ms,
    /// however little each has to send.
    Polled,
}

/// Where the pieces are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// The row in `db_stock`.
    #[serde(rename = "mysql")]
    MySql,
    /// The key `stock`.
    Redis,
}

/// A server that a strategy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Server {
    MySql,
    Redis,
    ZooKeeper,
}

impl Pace {
    /// Connections, each of which sends one request after the other.
    #[must_use]
    pub const fn threads(self) -> u32 {
        match self {
            Self::Course => 100,
            Self::Polled => 40,
        }
    }

    /// Requests of each connection.
    #[must_use]
    pub const fn loops(self) -> u32 {
        match self {
            Self::Course => 50,
            Self::Polled => 25,
        }
    }
}

impl Server {
    /// Its name in answers, logs and figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::Redis => "redis",
            Self::ZooKeeper => "zookeeper",
        }
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strategy").field("slug", &self.slug).finish_non_exhaustive()
    }
}
