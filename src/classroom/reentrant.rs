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
use crate::{ctx::Ctx, error::Error, stock::Job};
use oversell_lock::Lock;

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
    let (mut visit, name) = (Visit::of(ctx), job.redis_name("reentrantLock"));
    let lock = ctx.redis.lock(&name).owner(visit.holder);
    let outer = lock.acquire(job.wait_left()).await?;
    visit.step(Did::Took, &name, 1);
    let inner = lock.acquire(job.wait_left()).await?;
    visit.step(Did::Took, &name, 2);
    job.inside().await;
    for (guard, left) in [(inner, 1), (outer, 0)] {
        guard.release().await?;
        visit.step(Did::Left, &name, left);
    }
    Ok(visit)
}
