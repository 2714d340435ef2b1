//! A lock that outlives its answer, so that a second browser window finds it taken.

use crate::{ctx::Ctx, stock::Job};
use oversell_lock::Guard;

/// Keeps the guard, which would release when dropped, for as long as the job stays, and gives it back before the instance
/// ends.
pub(super) fn leave(ctx: &Ctx, job: &Job, guard: Guard) {
    job.enter();
    let (closing, stay) = (ctx.closing.clone(), job.hold);
    ctx.tasks.spawn(async move {
        closing.run_until_cancelled(tokio::time::sleep(stay)).await;
        drop(guard);
    });
}
