//! Plays a lesson at once, from its first statement to its last.
//!
//! Next: `crate::replay`, where it is a race that people follow.

use super::{lesson::DeadlockLesson, step::DeadlockReplay, two_transactions::TwoTransactions};
use crate::{ctx::Ctx, error::Error};

/// Plays a lesson, with or without its cure; with `retry`, a transaction that failed is begun again.
///
/// # Errors
///
/// [`Error::Timeout`] if other plays or users of the pool take too long, [`Error::Unavailable`] if MySQL is down.
///
/// # Cancel safety
///
/// A play that was begun goes on in the background, and leaves nothing.
pub async fn replay(
    ctx: &Ctx,
    lesson: &'static DeadlockLesson,
    cured: bool,
    retry: bool,
) -> Result<DeadlockReplay, Error> {
    let own = ctx.clone();
    let played = ctx.tasks.spawn(async move {
        let mut two = TwoTransactions::open(&own, lesson, cured, false).await?;
        for (side, sql) in lesson.script(cured) {
            two.hear(side).await?;
            if !two.has_failed(side) {
                two.send(side, sql).await?;
            }
        }
        two.end(retry).await
    });
    played.await.map_err(|e| Error::Internal(e.to_string()))?
}
