//! §3.7.6 A barrier: a gate that one closes and opens for all.
//!
//! 1. `set` closes `/curator/barrier`.
//! 2. `wait` goes on once somebody has opened it again with `remove`.
//!
//! What it survives: instances that die: the node stays. **What breaks it**: nobody opens it, and all wait in vain.
//!
//! Next: `oversell_lock::zk::ZkBarrier`, then `zk_double_barrier.rs`.

use crate::classroom::*;
use oversell_lock::LockError;

/// The path of the barrier, which is closed while the node exists.
const BARRIER: &str = "/curator/barrier";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::ZooKeeper(BARRIER)],
    windows: &[
        WindowAddress {
            path: "/test/zk/barrier/set",
            object: BARRIER,
            summary: "Closes the barrier.",
            done: "It is closed",
            example: "栅栏已关上",
            may_be_lost: false,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(close_barrier(ctx, job)),
        },
        WindowAddress {
            path: "/test/zk/barrier/wait",
            object: BARRIER,
            summary: "Waits until the barrier is open.",
            done: "It is open",
            example: "通过栅栏",
            may_be_lost: false,
            wait: Some(DEFAULT_WAIT),
            stay: None,
            visit: |ctx, job| Box::pin(wait_at_barrier(ctx, job)),
        },
        WindowAddress {
            path: "/test/zk/barrier/remove",
            object: BARRIER,
            summary: "Opens the barrier.",
            done: "It is open",
            example: "栅栏已移除",
            may_be_lost: false,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(open_barrier(ctx, job)),
        },
    ],
};

/// The default wait: people walk through.
const DEFAULT_WAIT: Duration = Duration::from_secs(600);

/// Closes the barrier, or says that it was closed before.
/// Cancel safety: dropped, it may be closed or not.
async fn close_barrier(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    job.enter();
    let set = ctx.zk.barrier(&job.zk_path(BARRIER)).set().await?;
    Ok(answer_for(job, set, ["栅栏已关上", "栅栏本来就关着"]))
}

/// Opens the barrier, or says that it was open before.
/// Cancel safety: dropped, it may be open or not.
async fn open_barrier(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    job.enter();
    let removed = ctx.zk.barrier(&job.zk_path(BARRIER)).remove().await?;
    Ok(answer_for(job, removed, ["栅栏已移除", "栅栏本来就开着"]))
}

/// Prints on the console, and answers, `now` if a change was `done`, else `before`.
fn answer_for(job: &Job, done: bool, [now, before]: [&str; 2]) -> Answer {
    let text = if done { now } else { before };
    job.say(text);
    Answer::text(text)
}

/// Waits until the barrier is open, as long as the job may.
async fn wait_at_barrier(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    job.say("在栅栏前等着");
    ctx.zk.barrier(&job.zk_path(BARRIER)).wait(job.wait_left()).await?;
    job.enter();
    job.say("通过栅栏");
    Ok(Answer::text("通过栅栏"))
}

/// Whether the barrier of product 1 is closed.
pub async fn is_barrier_closed(ctx: &Ctx) -> Result<bool, Error> {
    match ctx.zk.barrier(BARRIER).wait(Duration::ZERO).await {
        Ok(()) => Ok(false),
        Err(LockError::Timeout { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
