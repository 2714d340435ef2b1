//! A strategy: a value with its promise and the function that takes a piece.

use crate::{
    config::Config,
    ctx::Ctx,
    error::Error,
    registry::{Rank, RegistryEntry, Spec},
    section::{Deduction, FixedLease, Job, Name, redis_polling},
    server::Server,
    terminal::chinese::told,
};
use futures::future::BoxFuture;
use serde::Serialize;
use std::{fmt, time::Duration};
use utoipa::ToSchema;

/// Takes one piece, or says why not.
pub type Deduct = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Deduction, Error>>;

/// One way to take a piece of the stock.
pub type Strategy = RegistryEntry<StrategySpec>;

/// The specification of a strategy.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = StrategyFacts)]
pub struct StrategySpec {
    /// The place in the course: `1.7.1`, or `[002]` for a companion text.
    pub chapter: &'static str,
    /// Where it stands in the course. In JSON: whether it is beyond the course, listed after the strategy that it improves.
    #[serde(rename = "beyond")]
    #[schema(value_type = bool)]
    pub rank: Rank,
    /// Where the pieces that it takes are counted.
    pub store: Store,
    pub promise: Promise,
    /// The servers that it cannot do without.
    pub needs: &'static [Server],
    /// About how many pieces a second it sells to 100 concurrent buyers, all on one small machine: it estimates how long a
    /// run will take, and nothing is judged by it.
    #[schema(example = 72)]
    pub pace: u32,
    /// Its names in the servers besides the stock; a reset clears them.
    #[serde(skip)]
    pub names: &'static [Name],
    #[serde(skip)]
    pub deduct: Deduct,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Loses updates at all times.
    Unsafe,
    /// Exact in one instance only.
    OneProcess,
    /// Exact while no holder outlives its lease.
    Lease,
    /// Exact under every fault of a holder.
    Safe,
}

impl fmt::Display for Promise {
    /// The word in answers and tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Promise {
    /// Its words in the language of the terminal.
    pub(crate) fn here(self) -> String {
        let english = self.to_string();
        let chinese = match self {
            Self::Unsafe => "会超卖",
            Self::OneProcess => "一个实例不超卖，三个超卖",
            Self::Lease => "租约之内不超卖",
            Self::Safe => "不超卖",
        };
        told!("{chinese}", "{english}")
    }
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

impl Strategy {
    /// Whether it is the lock of a student (`/mine`), with an unknown promise.
    #[must_use]
    pub fn is_own_lock(&self) -> bool {
        self.slug == "mine"
    }

    /// The lease that is not renewed: after it a holder is not alone. `None` if it is renewed, or there is none.
    #[must_use]
    pub fn fixed_lease(&self, config: &Config) -> Option<Duration> {
        self.spec.names.iter().find_map(|name| match name {
            Name::RedisFor(_, FixedLease::Course) => Some(redis_polling::LEASE),
            Name::RedisFor(_, FixedLease::Configured) => {
                Some(Duration::from_millis(config.lock.lease_ms))
            }
            _ => None,
        })
    }
}

impl Spec for StrategySpec {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn chapter(&self) -> &'static str {
        self.chapter
    }
}
