//! §2.10.2 A queue in front of the fair lock: in which order they came, and in which they got in.
//!
//! 1. Take a number on arrival, and enter the queue of `fairLock`.
//! 2. Inside, take the next number of those who got in. With a fair lock it is the same one, whatever the instance.
//! 3. Stay; release.
//!
//! The numbers go on over all instances, until nobody has come for a day; `PUT /stock` begins anew. A client that hangs up while
//! it waits leaves a gap between the two. Arrivals within the same millisecond may take their numbers in another order than
//! their places in the queue: two commands are not one.
//!
//! Next: `oversell_lock::redis::RedisFairLock`, then `multi.rs`.

use crate::classroom::window::{VisitAction, next_number};
use crate::classroom::*;

const LOCK: &str = "fairLock";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::Redis(LOCK)],
    windows: &[WindowAddress {
        path: "/test/fair",
        object: LOCK,
        summary: "Queues at the fair lock, and says as which number it came and got in.",
        done: "It held the fair lock, and has released it",
        example: "来到 fairLock #2\n拿到 fairLock #2\n释放 fairLock #2\n",
        may_be_lost: true,
        wait: None,
        stay: None,
        visit: |ctx, job| Box::pin(visit(ctx, job)),
    }],
};

/// Waits in the queue, stays inside as long as the job says, and leaves.
///
/// Cancel safety: Dropping it leaves nothing in the queue.
async fn visit(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let (mut visit, name) = (LockVisit::with_new_owner(ctx), job.redis_name(LOCK));
    visit.record_step(job, VisitAction::Arrived, &name, next_number(ctx, &name, "came").await?);
    let guard = ctx.redis.fair_lock(&name).owner(visit.holder).lease(job.watchdog_lease(ctx)).acquire(job.wait_left()).await?;
    let entered = next_number(ctx, &name, "entered").await?;
    visit.record_step(job, VisitAction::Acquired, &name, entered);
    job.enter_and_stay().await;
    job.leave();
    guard.release().await?;
    visit.record_step(job, VisitAction::Released, &name, entered);
    Ok(visit.answer(ctx))
}
