//! §2.10.2 A queue in front of the fair lock: in which order they came, and in which they got in.
//!
//! 1. Take a number on arrival, and enter the queue of `fairLock`.
//! 2. Inside, take the next number of those who got in. With a fair lock it is the same one, whatever the instance.
//! 3. Stay; release.
//!
//! The numbers go on for ever, over all instances; `PUT /stock` begins anew. Who hangs up while it waits leaves a gap
//! between the two. Arrivals within the same millisecond may take their numbers the other way round than they queue: two
//! commands are not one.
//!
//! Next: `oversell_lock::redis::RedisFairLock`, then `multi.rs`.

use super::visit::{Did, Visit, next};
use crate::{
    ctx::Ctx,
    error::Error,
    stock::{Job, Name},
};
use oversell_lock::Lock;

const LOCK: &str = "fairLock";

pub(super) const NAMES: &[Name] = &[Name::Redis(LOCK)];

/// Waits in the queue, stays inside as long as the job says, and leaves.
///
/// # Errors
///
/// [`Error::NotHad`] where the turn did not come within the job's wait, [`Error::Unavailable`] where Redis is down.
///
/// # Cancel safety
///
/// Dropping it leaves nothing in the queue.
pub async fn visit(ctx: &Ctx, job: &Job) -> Result<Visit, Error> {
    let (mut visit, name) = (Visit::of(ctx), job.redis_name(LOCK));
    visit.step(job, Did::Came, &name, next(ctx, &name, "came").await?);
    let guard = ctx
        .redis
        .fair_lock(&name)
        .owner(visit.holder)
        .lease(job.watchdog(ctx))
        .acquire(job.wait_left())
        .await?;
    let entered = next(ctx, &name, "entered").await?;
    visit.step(job, Did::Took, &name, entered);
    job.inside().await;
    job.leave();
    guard.release().await?;
    visit.step(job, Did::Left, &name, entered);
    Ok(visit)
}
