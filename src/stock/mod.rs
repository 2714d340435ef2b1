//! The stock, and every way to take a piece of it.
//!
//! A strategy is one file with one constant, [`Strategy`]. The list of them, [`ALL`], drives routes, page,
//! comparison, plans, documents and tests: there is no second list.
//!
//! Read in the course's order: `none`, `mutex`, `single_update`, …

mod fenced;
mod merged;
mod strategy;

mod mutex;
mod mutex_commit_late;
mod mysql_named_lock;
mod none;
mod redis_fair;
mod redis_fenced;
mod redis_lock;
mod redis_multi;
mod redis_redlock;
mod redis_reentrant;
mod redis_script;
mod redis_setnx;
mod redis_setnx_lua;
mod redis_setnx_owner;
mod redis_setnx_ttl;
mod redis_watch;
mod redis_watch_merged;
mod redis_watchdog;
mod redis_write;
mod select_for_update;
mod select_share;
mod single_update;
mod single_update_buckets;
mod single_update_merged;
mod table_lock;
mod table_lock_lease;
mod version_cas;
mod version_cas_paced;
mod zk_ephemeral;
mod zk_fenced;
mod zk_lock;
mod zk_multi;
mod zk_mutex;
mod zk_reentrant;
mod zk_semaphore_mutex;
mod zk_sequential;
mod zk_write;

use crate::{
    error::Error,
    section::{
        Deducted, Job, LockState, Name, Point, Points, Unrenewed, mysql, poll, redis_key,
        redis_polling, zk_node,
    },
    server::Server,
};
use oversell_lock::{Fence, Guard, LockError};
use std::future::Future;

pub(crate) use redis_multi::PARTS;
pub(crate) use redis_reentrant::Reentrant;
pub(crate) use redis_setnx_lua::Scripted;
pub use strategy::{Deduct, Promise, Store, Strategy};
pub(crate) use zk_multi::PARTS as ZK_PARTS;

/// Every strategy, in the course's order.
pub const ALL: &[Strategy] = &[
    none::STRATEGY,
    mutex::STRATEGY,
    mutex_commit_late::STRATEGY,
    single_update::STRATEGY,
    single_update_merged::STRATEGY,
    single_update_buckets::STRATEGY,
    select_for_update::STRATEGY,
    select_share::STRATEGY,
    version_cas::STRATEGY,
    version_cas_paced::STRATEGY,
    redis_watch::STRATEGY,
    redis_watch_merged::STRATEGY,
    redis_setnx::STRATEGY,
    redis_setnx_ttl::STRATEGY,
    redis_setnx_owner::STRATEGY,
    redis_script::STRATEGY,
    redis_setnx_lua::STRATEGY,
    redis_reentrant::STRATEGY,
    redis_watchdog::STRATEGY,
    redis_lock::STRATEGY,
    redis_fair::STRATEGY,
    redis_multi::STRATEGY,
    redis_redlock::STRATEGY,
    redis_write::STRATEGY,
    redis_fenced::STRATEGY,
    zk_ephemeral::STRATEGY,
    zk_sequential::STRATEGY,
    zk_lock::STRATEGY,
    zk_reentrant::STRATEGY,
    zk_mutex::STRATEGY,
    zk_semaphore_mutex::STRATEGY,
    zk_write::STRATEGY,
    zk_multi::STRATEGY,
    zk_fenced::STRATEGY,
    table_lock::STRATEGY,
    table_lock_lease::STRATEGY,
    mysql_named_lock::STRATEGY,
];

/// The strategy of this name.
#[must_use]
pub fn find(slug: &str) -> Option<&'static Strategy> {
    ALL.iter().find(|s| s.slug == slug)
}

/// Runs a section under a lock and gives the lock back.
///
/// Once the section is through, a piece is sold or it is not: a release that fails cannot change that. It is logged, and
/// the answer says where the lock was lost; else it goes with its lease, its session or its row.
async fn under<F, S>(guard: Guard, section: F) -> Result<Deducted, Error>
where
    F: FnOnce(Option<Fence>) -> S,
    S: Future<Output = Result<Deducted, Error>>,
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
