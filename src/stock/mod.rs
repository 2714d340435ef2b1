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
    error::Error,
    registry::in_order,
    section::{Deduction, LockState},
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
