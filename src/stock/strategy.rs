//! What a strategy is: a value that says what it promises, and the function that takes a piece.

use super::{Deducted, Job};
use crate::{ctx::Ctx, error::Error, server::Server};
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
    /// Whether it is what we know better, beside the strategy of the course that stands before it.
    pub beyond: bool,
    /// What it writes in the servers besides the stock, for a reset to clear.
    #[serde(skip)]
    pub names: &'static [Name],
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

/// A name of CONTRACT section 5 that a strategy or a lesson writes in a server, for product 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A key of Redis, with all that belongs to it in Redisson's format.
    Redis(&'static str),
    /// The same on each node of Redlock.
    RedisNodes(&'static str),
    /// A node of ZooKeeper, with all that is below it.
    ZooKeeper(&'static str),
    /// A row of `tb_lock`.
    TableLock(&'static str),
    /// The highest fencing token that the product's row has seen.
    Fence,
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

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strategy").field("slug", &self.slug).finish_non_exhaustive()
    }
}
