//! The stock, and every way to take a piece of it.
//!
//! A strategy is one file in `strategies/` with its text beside it, and registers itself. The list of them, [`ALL`],
//! drives routes, page, comparison, plans, documents and tests: there is no second list.
//!
//! Read in the course's order: `none`, `mutex`, `single_update`, …

mod fenced;
mod merged;
mod prelude;
mod product;
mod retried;
mod strategy;

/// Each file of `strategies/`.
mod strategies {
    include!(concat!(env!("OUT_DIR"), "/strategies.rs"));
}

use crate::{
    ctx::Ctx,
    error::Error,
    registry::in_order,
    section::{Deduction, Job, LockState},
};
use oversell_lock::{Fence, Guard, LockError};
use std::{future::Future, sync::LazyLock};

pub use product::check_product;
pub use strategies::mine::stages;
pub(crate) use strategies::{
    mine::{current_scripts, put_own_pieces},
    redis_multi::PARTS,
    redis_reentrant::Reentrant,
    redis_setnx_lua::DeleteByScript,
    zk_multi::PARTS as ZK_PARTS,
    zk_reentrant_as_printed::{
        THREAD_LOCAL, deduct as reentrant_as_printed, locked as locked_as_printed,
    },
};
pub use strategy::{Deduct, Promise, Store, Strategy, StrategySpec};

/// Every strategy, in the course's order.
pub static ALL: LazyLock<Vec<Strategy>> = LazyLock::new(|| in_order(strategies::FILES));

/// The strategy of this name.
#[must_use]
pub fn find(slug: &str) -> Option<&'static Strategy> {
    ALL.iter().find(|s| s.slug == slug)
}

impl Strategy {
    /// Takes one piece. The console shows a request with a name arrive, enter and leave.
    ///
    /// # Errors
    ///
    /// As the strategy's own: [`Error::SoldOut`], [`Error::Timeout`] and the others.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves no lock behind; the piece may be sold or not.
    pub async fn take(&self, ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
        let printed = job.print();
        if printed {
            job.say(format_args!("来了：{}", self.slug));
        }
        let outcome = (self.spec.deduct)(ctx, job).await;
        if printed {
            match &outcome {
                Ok(Deduction {
                    remaining: Some(left),
                    ..
                }) => job.say(format_args!("买到了，还剩 {left} 件")),
                Ok(_) => job.say("买到了"),
                Err(error) => job.say(format_args!("没买到：{error}")),
            }
        }
        outcome
    }
}

/// Runs a section under a lock and releases the lock.
///
/// After the section a piece is sold or not: a failed release cannot change that. It is logged, and the answer says if the
/// lock was lost; otherwise the lock ends with its lease, its session or its row.
async fn under<F, S>(guard: Guard, section: F) -> Result<Deduction, Error>
where
    F: FnOnce(Option<Fence>) -> S,
    S: Future<Output = Result<Deduction, Error>>,
{
    let outcome = section(guard.fence()).await;
    let found = match guard.release().await {
        Ok(()) => Some(LockState::Kept),
        Err(error) => {
            tracing::warn!(%error, "the lock was not released cleanly");
            matches!(error, LockError::Lost { .. }).then_some(LockState::Lost)
        }
    };
    Ok(outcome?.unlocked(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, terminal::console::Log};
    use std::time::Duration;

    #[tokio::test]
    async fn only_a_named_request_prints_on_the_console() {
        let ctx = Ctx::new(Config::load(&[]).expect("the defaults")).expect("good addresses");
        let (log, _listening) = Log::listen();
        let spec = StrategySpec {
            deduct: |_, job| {
                Box::pin(async {
                    job.enter_and_stay().await;
                    Ok(Deduction::left(7))
                })
            },
            ..*ALL[0]
        };
        let strategy = Strategy {
            spec,
            ..ALL[0].clone()
        };
        let job = || Job::new(1, Duration::ZERO, Duration::ZERO);
        strategy.take(&ctx, &job()).await.expect("a piece");
        assert!(log.lines().is_empty());
        strategy
            .take(&ctx, &job().with_options(None, Some("小明".into())))
            .await
            .expect("a piece");
        let printed = log.lines();
        let words = printed.iter().filter_map(|line| line.split_once("小明 "));
        let words: Vec<_> = words.map(|(_, words)| words).collect();
        assert_eq!(
            words,
            ["来了：none", "进来了", "买到了，还剩 7 件"],
            "{printed:?}"
        );
    }
}
