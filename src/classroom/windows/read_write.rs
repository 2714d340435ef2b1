//! §2.10.5 Readers together, writers alone: four orders to try in two browser windows.
//!
//! 1. Take the read or the write half of `rwLock`, waiting for it, with a lease of ten seconds that nobody renews.
//! 2. Answer at once, and do **not** release: the lock stays taken until its lease ends, so that the second window finds
//!    it so. Read and read go together; read and write, write and read, write and write wait for the lease.
//!
//! What it survives: an instance that dies (the lease ends all the same); one that is told to end gives the lock back.
//! **What breaks it**: nothing here: who holds it has answered already and does nothing more.
//!
//! Next: `oversell_lock::redis::RedisRwLock`, then `fair.rs`.

use crate::classroom::*;
use oversell_lock::redis::{Lease, RedisRwLock};
use redis::AsyncCommands;
use std::time::SystemTime;

const LOCK: &str = "rwLock";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::Redis(LOCK)],
    windows: &[
        WindowAddress {
            path: "/test/read",
            object: LOCK,
            summary: "Takes the read half of the read-write lock and leaves it to its lease of ten seconds.",
            done: "It has the read half, together with other readers",
            example: "测试读",
            may_be_lost: false,
            wait: None,
            stay: Some(|| DEFAULT_LEASE),
            visit: |ctx, job| Box::pin(leave_to_lease(ctx, job, lock(ctx, job).read().lease(fixed_lease(job)), "测试读")),
        },
        WindowAddress {
            path: "/test/write",
            object: LOCK,
            summary: "Takes the write half of the read-write lock and leaves it to its lease of ten seconds.",
            done: "It has the write half, alone",
            example: "测试写",
            may_be_lost: false,
            wait: None,
            stay: Some(|| DEFAULT_LEASE),
            visit: |ctx, job| Box::pin(leave_to_lease(ctx, job, lock(ctx, job).write().lease(fixed_lease(job)), "测试写")),
        },
    ],
};

/// The course's `lock(10, TimeUnit.SECONDS)`.
const DEFAULT_LEASE: Duration = Duration::from_secs(10);

/// Takes a half, and answers; the half is released when its lease is over.
///
/// Cancel safety: Dropping it while it waits leaves nothing behind.
async fn leave_to_lease(ctx: &Ctx, job: &Job, half: impl Lock, text: &str) -> Result<Answer, Error> {
    let permit = hold_permit(ctx)?;
    let guard = half.acquire(job.wait_left()).await?;
    let end = earliest_lease_end(ctx, job).await?;
    job.say(format_args!("{text}锁。。。。"));
    hold_after_answer(ctx, job, (guard, permit), lease_or_stay(job), Some(end));
    Ok(Answer::text(text))
}

/// The job's lease, which is not renewed.
fn fixed_lease(job: &Job) -> Lease {
    Lease::Fixed(lease_or_stay(job))
}

/// The requested lease, else the stay, at least 1 ms.
fn lease_or_stay(job: &Job) -> Duration {
    let lease = job.request.lease.unwrap_or(job.request.hold);
    lease.max(Duration::from_millis(1))
}

/// The earliest time at which the lease can end, by this machine's clock. The server may answer late, so the remaining lease
/// counts from before the question.
async fn earliest_lease_end(ctx: &Ctx, job: &Job) -> Result<SystemTime, Error> {
    let asked = SystemTime::now();
    let left: i64 = ctx.redis.connection().pttl(ctx.redis_key(&job.redis_name(LOCK))).await?;
    Ok(asked + Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}

fn lock(ctx: &Ctx, job: &Job) -> RedisRwLock {
    ctx.redis.rw_lock(&job.redis_name(LOCK))
}
