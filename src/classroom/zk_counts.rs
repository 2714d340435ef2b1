//! §3.7.7 Numbers that all instances see: Curator's `SharedCount` and its atomic long.
//!
//! 1. [`share`]: read `/curator/count` (0 at first) and set it to a number at random, whatever it is by then.
//! 2. [`change`]: add to `/curator/atomic`, or set it, on condition that nobody was faster; tried again, and after some
//!    tries under a mutex. It says what it was before and what it is after.
//!
//! What it survives: every instance dying; the number stays. A write whose answer is lost is neither repeated nor called
//! failed: it may have been made, and the answer says so.
//!
//! Next: `oversell_lock::zk::ZkAtomicLong`, then `zk_barriers.rs`.

use crate::{
    ctx::Ctx,
    error::Error,
    server::Server,
    stock::{Job, Name},
};
use oversell_lock::{LockError, zk::Outcome};

const COUNT: &str = "/curator/count";
const ATOMIC: &str = "/curator/atomic";

pub(super) const NAMES: &[Name] = &[Name::ZooKeeper(COUNT), Name::ZooKeeper(ATOMIC)];

/// The numbers that [`share`] draws from are below this.
const BELOW: i32 = 1000;

/// What is done to the atomic long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Adds so much; a negative number takes away. It goes around at the end of the range.
    Add(i64),
    /// Takes so much away.
    Subtract(i64),
    /// Sets it, and says what it replaced.
    TrySet(i64),
    /// Sets it without looking.
    ForceSet(i64),
}

/// Reads the shared count and sets it to a number at random: what it was, and what it is.
///
/// # Errors
///
/// [`Error::Unavailable`] where ZooKeeper is down; [`Error::Unknown`] where it did not answer the write.
///
/// # Cancel safety
///
/// Dropped, it may have been set or not.
pub async fn share(ctx: &Ctx, job: &Job) -> Result<(i32, i32), Error> {
    let count = ctx.zk.shared_count(&job.zk_path(COUNT), 0);
    job.enter();
    let before = count.get().await?.value;
    ctx.zk.session()?;
    let after = written(count.set(fastrand::i32(0..BELOW)).await)?.value;
    job.say(format_args!(
        "我获取了共享计数的初始值：{before}，并把计数器的值改为：{after}"
    ));
    Ok((before, after))
}

/// What the atomic long is.
///
/// # Errors
///
/// [`Error::Unavailable`] where ZooKeeper is down.
///
/// # Cancel safety
///
/// Safe.
pub async fn get(ctx: &Ctx, job: &Job) -> Result<i64, Error> {
    job.enter();
    Ok(ctx.zk.atomic_long(&job.zk_path(ATOMIC)).get().await?)
}

/// Changes the atomic long. [`Change::ForceSet`] does not look: its `before` is what was read a moment earlier.
///
/// # Errors
///
/// [`Error::Unavailable`] where ZooKeeper is down; [`Error::Unknown`] where it did not answer the write.
///
/// # Cancel safety
///
/// Dropped, it may have been changed or not, once.
pub async fn change(ctx: &Ctx, job: &Job, change: Change) -> Result<Outcome, Error> {
    let number = ctx.zk.atomic_long(&job.zk_path(ATOMIC));
    job.enter();
    // Where there is no connection, nothing is sent.
    ctx.zk.session()?;
    let outcome = written(match change {
        Change::Add(operand) => number.add(operand).await,
        Change::Subtract(operand) => number.subtract(operand).await,
        Change::TrySet(value) => number.try_set(value).await,
        Change::ForceSet(value) => {
            let before = number.get().await?;
            let set = number.force_set(value).await;
            set.map(|()| Outcome {
                succeeded: true,
                before,
                after: value,
                promoted: false,
            })
        }
    })?;
    job.say(format_args!(
        "{change:?}: {} → {}, {}",
        outcome.before, outcome.after, outcome.succeeded
    ));
    Ok(outcome)
}

/// A write that has no answer may have been made.
fn written<T>(result: Result<T, LockError>) -> Result<T, Error> {
    result.map_err(|error| match error {
        LockError::Unavailable { reason, .. } => Error::Unknown {
            server: Server::ZooKeeper.name(),
            reason: reason.to_string(),
        },
        other => other.into(),
    })
}
