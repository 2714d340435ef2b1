//! §2.6 Who has the lock may take it again, and must give it back as often.
//!
//! 1. Take `reentrantLock`, then take it again inside, as the same owner: the second one does not wait.
//! 2. Stay; give both back. The lock is free with the last.
//!
//! The numbers are the owner's holds, which its process counts; Redis sees one. The owner is the request, not a thread:
//! async code changes threads at every `await`. With a lock that is not re-entrant, step 1 would wait for itself until its
//! wait is over.
//!
//! Next: `oversell_lock::redis::RedisLock::owner`.

use super::visit::{Did, Visit};
use crate::{
    ctx::Ctx,
    error::Error,
    stock::{Job, Name},
};
use oversell_lock::Lock;

const LOCK: &str = "reentrantLock";

pub(super) const NAMES: &[Name] = &[Name::Redis(LOCK)];

/// Takes the lock twice, stays as long as the job says, and gives it back twice.
///
/// # Errors
///
/// [`Error::NotHad`] where another has it for all of the job's wait, [`Error::Unavailable`] where Redis is down.
///
/// # Cancel safety
///
/// Dropping it leaves nothing behind.
pub async fn visit(ctx: &Ctx, job: &Job) -> Result<Visit, Error> {
    let (mut visit, name) = (Visit::of(ctx), job.redis_name(LOCK));
    let lock = ctx
        .redis
        .lock(&name)
        .owner(visit.holder)
        .lease(job.watchdog(ctx));
    let mut guards = Vec::new();
    for _ in 0..2 {
        guards.push(lock.acquire(job.wait_left()).await?);
        visit.step(job, Did::Took, &name, guards.len() as u64);
    }
    job.say("测试可重入锁。。。。");
    job.inside().await;
    job.leave();
    while let Some(guard) = guards.pop() {
        guard.release().await?;
        visit.step(job, Did::Left, &name, guards.len() as u64);
    }
    Ok(visit)
}
