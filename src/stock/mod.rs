//! The stock, and every way to take a piece of it.
//!
//! A strategy is a value with its promise and the function that takes a piece ([`StrategySpec`]). It is one file in
//! `strategies/` with its text beside it, and registers itself; it is written in what this file imports. The list of them,
//! [`ALL`], drives routes, page, comparison, plans, documents and tests: there is no second list. The slug `redis-lock` is
//! the file `redis_lock.rs`; `build.rs` makes the list `FILES`.
//!
//! Read in the course's order: `none`, `mutex`, `single_update`, …

pub mod assumptions;
mod fenced;
mod merged;
mod retried;

/// Each file of `strategies/`.
mod strategies {
    include!(concat!(env!("OUT_DIR"), "/strategies.rs"));
}

use crate::{
    config::Config,
    ctx::Ctx,
    error::Error,
    registry::{Rank, RegistryEntry, Spec, in_order},
    section::{Deduction, FixedLease, Job, LockState, Name, Point, mysql, poll, redis_polling},
    server::Server,
};
use futures::future::BoxFuture;
use oversell_lab::terminal::chinese::localized;
use oversell_lock::{Fence, Guard};
use serde::Serialize;
use std::{fmt, future::Future, sync::LazyLock, time::Duration};
use utoipa::ToSchema;

pub use crate::section::product::{check_product, check_product_was_there};
pub(crate) use assumptions::LastUnfitTables;
use assumptions::UnfitTable;
pub use strategies::mine::stages;
pub(crate) use strategies::{
    mine::current_scripts,
    redis_multi::PARTS,
    redis_reentrant::ReentrantScripts,
    redis_setnx_lua::SetnxWithScript,
    zk_multi::PARTS as ZK_PARTS,
    zk_reentrant_as_printed::{THREAD_LOCAL, deduct as reentrant_as_printed, run_locked as run_locked_as_printed},
};

/// The function of a strategy: takes one piece, or fails with the reason.
pub type Deduct = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Deduction, Error>>;

/// A registered strategy: its name, its text and its specification.
pub type Strategy = RegistryEntry<StrategySpec>;

/// The specification of a strategy.
#[derive(Clone, Copy, Serialize, ToSchema)]
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
#[schema(as = StrategyPromise)]
pub enum Promise {
    /// Loses updates at all times.
    Unsafe,
    /// Exact in one instance only.
    OneProcess,
    /// Exact while no holder outlives its lease, and the lock's server stands still for no longer.
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
    /// The words of the promise in the language of the terminal.
    pub(crate) fn localized(self) -> String {
        let english = self.to_string();
        let chinese = match self {
            Self::Unsafe => "会超卖",
            Self::OneProcess => "一个实例不超卖，三个超卖",
            Self::Lease => "租约之内不超卖",
            Self::Safe => "不超卖",
        };
        localized!("{chinese}", "{english}")
    }
}

/// Where the pieces are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    /// The row in `db_stock`.
    MySql,
    /// The key `stock`.
    Redis,
}

/// Every strategy, in the course's order.
pub static ALL: LazyLock<Vec<Strategy>> = LazyLock::new(|| in_order(strategies::FILES));

/// The strategy of this slug.
pub fn find(slug: &str) -> Option<&'static Strategy> {
    ALL.iter().find(|s| s.slug == slug)
}

impl Strategy {
    /// Whether it is the lock that a student wrote (`/mine`).
    pub fn is_own_lock(&self) -> bool {
        self.slug == "mine"
    }

    /// The lease that is not renewed: after it a holder is not alone. `None` if it is renewed, or there is none.
    pub fn fixed_lease(&self, config: &Config) -> Option<Duration> {
        self.spec.names.iter().find_map(|name| match name {
            Name::RedisFor(_, FixedLease::Course) => Some(redis_polling::LEASE),
            Name::RedisFor(_, FixedLease::Configured) => Some(Duration::from_millis(config.lock.lease_ms)),
            _ => None,
        })
    }

    /// Whether its promise does not hold on this table.
    pub fn rests_on(&self, unfit: &UnfitTable) -> bool {
        let uses = match &*unfit.table {
            "db_stock" => self.begins_transaction(),
            _ => self.spec.names.iter().any(|name| matches!(name, Name::TableLock(_))),
        };
        uses && self.spec.promise != Promise::Unsafe
    }

    /// Whether its file begins a transaction, or the file of the strategy that it varies.
    fn begins_transaction(&self) -> bool {
        let varies = |base: &Strategy| self.source.contains(&format!("..{}::STRATEGY", base.slug.replace('-', "_")));
        self.source.contains("mysql::begin(") || ALL.iter().any(|base| varies(base) && base.begins_transaction())
    }

    /// Takes one piece. The console shows a request with a name arrive, enter and leave.
    /// Errors: as the strategy's own: [`Error::SoldOut`], [`Error::Timeout`] and the others; [`Error::Refuses`] if its promise
    /// does not hold on a table.
    /// Cancel safety: dropping it leaves no lock behind; the piece may be sold or not.
    pub async fn deduct(&self, ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
        let is_shown = job.show_on_console();
        if is_shown {
            job.say(format_args!("来了：{}", self.slug));
        }
        let unfit = ctx.local.of::<LastUnfitTables>().0.read().iter().find(|table| self.rests_on(table)).cloned();
        let outcome = match unfit {
            Some(unfit) => Err(Error::refused(Server::MySql, unfit.to_string(), "found by the probe")),
            None => (self.spec.deduct)(ctx, job).await,
        };
        if is_shown {
            match &outcome {
                Ok(Deduction { remaining: Some(left), .. }) => job.say(format_args!("买到了，还剩 {left} 件")),
                Ok(_) => job.say("买到了"),
                Err(error) => job.say(format_args!("没买到：{error}")),
            }
        }
        outcome
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

/// Runs a section under a lock and releases the lock.
///
/// After the section a piece is sold or not: a failed release cannot change that. It is logged, and the answer's field `lock`
/// says if the lock was lost (of several locks, a lost one decides); otherwise the lock ends with its lease, its session or
/// its row. The lock is released after an error of the section too.
async fn run_then_release<F, S>(guard: Guard, section: F) -> Result<Deduction, Error>
where
    F: FnOnce(Option<Fence>) -> S,
    S: Future<Output = Result<Deduction, Error>>,
{
    let outcome = section(guard.fence()).await;
    let found = LockState::at_release(guard).await;
    Ok(outcome?.with_lock_state(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, console::Log};
    use std::time::Duration;

    #[tokio::test]
    async fn only_a_named_request_prints_on_the_console() {
        let ctx = Ctx::new(Config::load(&[]).expect("the defaults")).expect("good addresses");
        let (log, _listening) = Log::listen();
        let spec = StrategySpec {
            deduct: |_, job| {
                Box::pin(async {
                    job.enter_and_stay().await;
                    Ok(Deduction::remaining(7))
                })
            },
            ..ALL[0].spec
        };
        let strategy = Strategy { spec, ..ALL[0].clone() };
        let job = || Job::new(1, Duration::ZERO, Duration::ZERO);
        strategy.deduct(&ctx, &job()).await.expect("a piece");
        assert!(log.lines().is_empty());
        strategy.deduct(&ctx, &job().with_options(None, Some("小明".into()))).await.expect("a piece");
        let printed = log.lines();
        let words = printed.iter().filter_map(|line| line.split_once("小明 "));
        let words: Vec<_> = words.map(|(_, words)| words).collect();
        assert_eq!(words, ["来了：none", "进来了", "买到了，还剩 7 件"], "{printed:?}");
    }

    fn resting_on(table: &str) -> Vec<&'static str> {
        let unfit = UnfitTable { table: table.into(), engine: "MyISAM".into() };
        ALL.iter().filter(|strategy| strategy.rests_on(&unfit)).map(|strategy| strategy.slug).collect()
    }

    #[test]
    fn what_rests_on_transactions_is_known_from_its_code() {
        let mut in_transaction = resting_on("db_stock");
        in_transaction.sort_unstable();
        assert_eq!(
            in_transaction,
            [
                "select-for-update",
                "select-for-update-retried",
                "select-share",
                "single-update-buckets",
                "single-update-node-buckets"
            ]
        );
        assert!(resting_on("tb_lock").starts_with(&["table-lock"]), "{:?}", resting_on("tb_lock"));
    }
}
