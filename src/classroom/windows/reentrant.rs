//! §2.6 Who has the lock may take it again, and must give it back as often.
//!
//! 1. Take `reentrantLock`, then take it again inside, as the same owner: the second one does not wait.
//! 2. Stay; give both back. The lock is free with the last.
//!
//! The numbers are the owner's holds, which its process counts; Redis sees one. The owner is the request, not a thread:
//! async code changes threads at every `await`. With a lock that is not re-entrant, step 1 would wait for itself until its
//! wait is over.
//!
//! Next: `oversell_lock::redis::RedisLock::owner`.

use crate::classroom::*;

const LOCK: &str = "reentrantLock";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::Redis(LOCK)],
    windows: &[WindowAddress {
        path: "/test/reentrant",
        object: LOCK,
        summary: "Takes a lock twice as one owner, and says what Redis counts.",
        done: "It was inside, and has left",
        example: "拿到 reentrantLock #1\n拿到 reentrantLock #2\n释放 reentrantLock #1\n释放 reentrantLock #0\n",
        may_be_lost: true,
        wait: None,
        stay: None,
        visit: |ctx, job| Box::pin(visit(ctx, job)),
    }],
};

/// Takes the lock twice, stays as long as the job says, and gives it back twice.
async fn visit(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let (visit, name) = (LockVisit::with_new_owner(ctx), job.redis_name(LOCK));
    let lock = ctx.redis.lock(&name).owner(visit.holder).lease(job.watchdog_lease(ctx));
    visit.take_twice(ctx, job, &name, lock).await
}
