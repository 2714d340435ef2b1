//! §2.10.3, 2.10.4 Several locks as one: all of three names, or most of five nodes.
//!
//! 1. Take the multi lock, or Redlock, as one holder.
//! 2. Ask Redis which parts this holder has; stay.
//! 3. Release.
//!
//! Next: `oversell_lock::MultiLock` and `oversell_lock::redis::Redlock`, then `reentrant.rs`.

use super::visit::{Did, Visit};
use crate::{
    ctx::Ctx,
    error::Error,
    stock::{Job, Name, PARTS},
};
use futures::future::join_all;
use oversell_lock::{Lock, MultiLock, redis::Redlock};
use redis::AsyncCommands;

const RED: &str = "redLock";

pub(super) const NAMES: &[Name] = &[
    Name::Redis(PARTS[0]),
    Name::Redis(PARTS[1]),
    Name::Redis(PARTS[2]),
    Name::RedisNodes(RED),
];

/// Takes all three locks in their order, stays as long as the job says, and gives them back in the reverse order.
///
/// # Errors
///
/// [`Error::NotHad`] where one was not had within the job's wait: then none is held. [`Error::Unavailable`] where Redis is
/// down.
///
/// # Cancel safety
///
/// Dropping it leaves nothing behind.
pub async fn all(ctx: &Ctx, job: &Job) -> Result<Visit, Error> {
    let mut visit = Visit::of(ctx);
    let names = PARTS.map(|name| job.redis_name(name));
    let parts = names
        .iter()
        .map(|name| {
            ctx.redis
                .lock(name)
                .owner(visit.holder)
                .lease(job.watchdog(ctx))
        })
        .collect();
    let guard = MultiLock::new(parts).acquire(job.wait_left()).await?;
    let ordered = || names.iter().zip([1, 2, 3]);
    for (name, order) in ordered() {
        visit.step(job, Did::Took, name, order);
    }
    job.inside().await;
    job.leave();
    guard.release().await?;
    for (name, order) in ordered().rev() {
        visit.step(job, Did::Left, name, order);
    }
    Ok(visit)
}

/// Takes `redLock` on most nodes, stays as long as the job says, and gives it back. The steps name the nodes, counted
/// from 1 as the configuration has them, that say that this process has it.
///
/// # Errors
///
/// [`Error::NotHad`] where most nodes said that another has it for all of the job's wait, [`Error::Unavailable`] where
/// fewer than most nodes answered.
///
/// # Cancel safety
///
/// Dropping it leaves nothing behind.
pub async fn most(ctx: &Ctx, job: &Job) -> Result<Visit, Error> {
    let (mut visit, name) = (Visit::of(ctx), job.redis_name(RED));
    let lock = Redlock::new(&ctx.nodes, &name)
        .owner(visit.holder)
        .lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    // What a node has is this hold's identity, which begins with the process.
    let (key, process) = (ctx.redis_key(&name), ctx.process.to_string());
    let nodes = ctx.nodes.iter().map(|node| {
        let (mut node, key, process) = (node.connection(), &key, &process);
        async move {
            node.hkeys(key)
                .await
                .is_ok_and(|ids: Vec<String>| ids.iter().any(|id| id.starts_with(process)))
        }
    });
    for (has_it, order) in join_all(nodes).await.into_iter().zip(1..) {
        if has_it {
            visit.step(job, Did::Took, &name, order);
        }
    }
    job.inside().await;
    job.leave();
    guard.release().await?;
    visit.step(job, Did::Left, &name, 0);
    Ok(visit)
}
