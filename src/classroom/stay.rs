//! A lock that outlives its answer, so that a second browser window finds it taken.

use crate::{ctx::Ctx, stock::Job};
use oversell_lock::Guard;
use std::time::Duration;

/// Keeps the guard, which would release when dropped, for so long, and gives it back before the instance ends.
pub(super) fn leave(ctx: &Ctx, job: &Job, guard: Guard, stay: Duration) {
    job.enter();
    let (closing, lane) = (ctx.closing.clone(), job.lane());
    ctx.tasks.spawn(async move {
        closing.run_until_cancelled(tokio::time::sleep(stay)).await;
        // Before the next one can be inside.
        drop(lane);
        drop(guard);
    });
}
