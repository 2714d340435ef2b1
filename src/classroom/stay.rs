//! A lock that outlives its answer, so that a second browser window finds it taken.

use crate::{ctx::Ctx, section::Job};
use oversell_lock::Guard;
use std::time::{Duration, SystemTime};

/// Keeps the guard for `stay` and then releases it; a closing instance releases it at once. If its lease ends earlier, at
/// `end`, the visit counts as over at `end`, however late this task runs.
pub(super) fn leave(ctx: &Ctx, job: &Job, guard: Guard, stay: Duration, end: Option<SystemTime>) {
    job.enter();
    // A task that stalled beyond the lease reports the present, not the past.
    let end = end.map(|end| end.max(SystemTime::now()));
    let (closing, visit) = (ctx.closing.clone(), job.observation.visit());
    ctx.tasks.spawn(async move {
        closing.run_until_cancelled(tokio::time::sleep(stay)).await;
        if let Some(visit) = visit {
            visit.leave_by(end);
        }
        drop(guard);
    });
}
