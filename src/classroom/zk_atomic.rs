//! §3.7.7 A number that all instances change: Curator's atomic long.
//!
//! Add to `/curator/atomic`, or set it, on condition that nobody was faster; tried again, and after some tries under a mutex.
//! The answer says what it was before and what it is after.
//!
//! What it survives: every instance dying; the number stays. A write whose answer is lost is neither repeated nor called
//! failed: it may have been made, and the answer says so.
//!
//! Next: `oversell_lock::zk::ZkAtomicLong`, then `windows/zk_barrier.rs`.

use super::window::{Answer, LessonDetails};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Job, Name},
};
use oversell_lock::{LockError, zk::Outcome};

/// The path of the atomic long.
pub const ATOMIC: &str = "/curator/atomic";

/// What the lesson keeps and a reset clears. Its mutex is beside it, and freed by its holder.
pub(super) const NAMES: &[Name] = &[Name::ZooKeeper(ATOMIC)];

/// A change of the atomic long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Adds this number; wraps around at the end of the range.
    Add(i64),
    Subtract(i64),
    /// Sets it, and says what it replaced.
    TrySet(i64),
    /// Sets it without looking.
    ForceSet(i64),
}

/// Reads the atomic long; its value is both `pre_value` and `post_value` of the answer.
pub async fn get(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    job.enter();
    let value = ctx.zk.atomic_long(&job.zk_path(ATOMIC)).get().await?;
    Ok(answer(true, value, value, false))
}

/// Changes the atomic long. [`Change::ForceSet`] does not look: its `before` is what was read a moment earlier.
/// Errors: [`Error::Unavailable`] if ZooKeeper is down; [`Error::Unknown`] if it did not answer the write.
/// Cancel safety: dropped, it may have been changed or not, once.
pub async fn change(ctx: &Ctx, job: &Job, change: Change) -> Result<Answer, Error> {
    let number = ctx.zk.atomic_long(&job.zk_path(ATOMIC));
    job.enter();
    // Without a connection nothing is sent.
    ctx.zk.session()?;
    let outcome = classify_write(match change {
        Change::Add(operand) => number.add(operand).await,
        Change::Subtract(operand) => number.subtract(operand).await,
        Change::TrySet(value) => number.try_set(value).await,
        Change::ForceSet(value) => {
            let before = number.get().await?;
            let set = number.force_set(value).await;
            set.map(|()| Outcome { succeeded: true, before, after: value, promoted: false })
        }
    })?;
    let Outcome { succeeded, before, after, promoted } = outcome;
    job.say(format_args!("{change:?}: {before} → {after}, {succeeded}"));
    Ok(answer(succeeded, before, after, promoted))
}

/// The answer to a change, or to a read.
fn answer(succeeded: bool, pre_value: i64, post_value: i64, promoted: bool) -> Answer {
    Answer::new(
        format!("{succeeded} {pre_value} -> {post_value}"),
        LessonDetails::Changed { succeeded, pre_value, post_value, promoted },
    )
}

/// Makes [`Error::Unknown`] of [`LockError::Unavailable`], because a write without an answer may have been done.
pub(super) fn classify_write<T>(result: Result<T, LockError>) -> Result<T, Error> {
    result.map_err(|error| match error {
        LockError::Unavailable { server, reason } => Error::Unknown { server, reason: reason.to_string() },
        other => other.into(),
    })
}
