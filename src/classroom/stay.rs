//! A lock that outlives its answer, so that a second browser window finds it taken.

use crate::{ctx::Ctx, section::Job};
use oversell_lock::Guard;
use std::time::{Duration, SystemTime};

/// Keeps the guard, which would release when dropped, for so long, and gives it back before the instance ends. Where its lease
/// ends by itself, the next one may be inside from that `end` on, however late this task goes on: by then it has left.
pub(super) fn leave(ctx: &Ctx, job: &Job, guard: Guard, stay: Duration, end: Option<SystemTime>) {
    job.enter();
    // Where it stood still for longer than its lease, it leaves as it comes, and not before.
    let end = end.map(|end| end.max(SystemTime::now()));
    let (closing, lane) = (ctx.closing.clone(), job.observation.lane());
    ctx.tasks.spawn(async move {
        closing.run_until_cancelled(tokio::time::sleep(stay)).await;
        // Before the next one can be inside.
        if let Some(lane) = lane {
            lane.leave_by(end);
        }
        drop(guard);
    });
}
