#![doc = include_str!("zk_reentrant_as_printed.md")]

use super::{none, zk_lock_as_printed as zk_lock};
use crate::section::zk_node;
use crate::stock::*;
use futures::future::BoxFuture;
use std::cell::Cell;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "3.5",
    rank: Rank::AsPrinted("zk-reentrant"),
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 340,
    names: &[Name::ZooKeeper("/distributed/zk-reentrant-as-printed")],
    deduct: |ctx, job| Box::pin(THREAD_LOCAL.scope(Cell::new(0), deduct(ctx, job))),
};

tokio::task_local! {
    /// How often the request has a lock: one number for the locks of all names.
    pub(crate) static THREAD_LOCAL: Cell<u32>;
}

/// Takes the lock twice, one inside the other, and a piece under both.
pub(crate) async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let path = job.zk_path("/distributed/zk-reentrant-as-printed") + "/lock-";
    let again = || run_locked(ctx, job, &path, || Box::pin(none::read_then_write(ctx, job, None)));
    run_locked(ctx, job, &path, || Box::pin(again())).await
}

/// Runs `section` under the lock at `path`: `new ZkDistributedLock(…)`, `lock()`, `unlock()`. If the request's counter says
/// that it has a lock already, it runs `section` at once.
pub(crate) async fn run_locked<'a>(
    ctx: &Ctx,
    job: &Job,
    path: &str,
    section: impl FnOnce() -> BoxFuture<'a, Result<Deduction, Error>>,
) -> Result<Deduction, Error> {
    let flag = THREAD_LOCAL.with(Cell::get);
    if flag > 0 {
        THREAD_LOCAL.with(|count| count.set(flag + 1));
        let outcome = section().await;
        THREAD_LOCAL.with(|count| count.set(flag));
        return outcome;
    }
    let node = zk_lock::lock(ctx, job, path).await?;
    THREAD_LOCAL.with(|count| count.set(1));
    let outcome = zk_node::run_then_release(node, |_| section()).await;
    THREAD_LOCAL.with(|count| count.set(0));
    outcome
}
