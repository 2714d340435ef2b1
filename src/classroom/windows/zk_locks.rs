//! §3.5, 3.7.3, 3.7.4 Curator's locks to try from several browser windows: readers and writers, several locks as one, one
//! lock twice.
//!
//! 1. `read` and `write`: take a half of `/curator/rwlock`, answer, and keep it for ten seconds more. ZooKeeper knows
//!    no lease, so the instance gives it back itself.
//! 2. `multi`: take `/curator/multi/1`, `/2`, `/3` as one; stay; give them back in the reverse order.
//! 3. `reentrant`: take `/curator/reentrant` twice as one owner. The numbers are the owner's holds; the server sees one
//!    node all the time.
//!
//! What it survives: an instance that dies (its session ends, and its nodes with it); one that is told to end gives back
//! what it keeps.
//!
//! Next: `oversell_lock::zk::ZkRwLock`, then `zk_semaphore.rs`.

use crate::classroom::*;
use crate::stock::ZK_PARTS;
use oversell_lock::{MultiLock, zk::ZkRwLock};

const RW_LOCK_PATH: &str = "/curator/rwlock";
const REENTRANT_PATH: &str = "/curator/reentrant";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[
        Name::ZooKeeper(RW_LOCK_PATH),
        Name::ZooKeeper(REENTRANT_PATH),
        Name::ZooKeeper(ZK_PARTS[0]),
        Name::ZooKeeper(ZK_PARTS[1]),
        Name::ZooKeeper(ZK_PARTS[2]),
    ],
    windows: &[
        WindowAddress {
            path: "/test/zk/read",
            object: RW_LOCK_PATH,
            summary: "Takes the read half of Curator's read-write lock and keeps it for ten seconds after the answer.",
            done: "It has the read half, together with other readers",
            example: "测试读",
            may_be_lost: false,
            wait: None,
            stay: Some(|| DEFAULT_STAY),
            visit: |ctx, job| Box::pin(async { keep_after_answer(ctx, job, lock(ctx, job).read(), "测试读").await }),
        },
        WindowAddress {
            path: "/test/zk/write",
            object: RW_LOCK_PATH,
            summary: "Takes the write half of Curator's read-write lock and keeps it for ten seconds after the answer.",
            done: "It has the write half, alone",
            example: "测试写",
            may_be_lost: false,
            wait: None,
            stay: Some(|| DEFAULT_STAY),
            visit: |ctx, job| Box::pin(async { keep_after_answer(ctx, job, lock(ctx, job).write(), "测试写").await }),
        },
        WindowAddress {
            path: "/test/zk/multi",
            object: "/curator/multi",
            summary: "Takes three of Curator's locks as one.",
            done: "It was inside, and has left",
            example: "拿到 /curator/multi/1 #1\n拿到 /curator/multi/2 #2\n拿到 /curator/multi/3 #3\n释放 /curator/multi/3 #3\n…",
            may_be_lost: true,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(multi(ctx, job)),
        },
        WindowAddress {
            path: "/test/zk/reentrant",
            object: REENTRANT_PATH,
            summary: "Takes one of Curator's locks twice as one owner.",
            done: "It was inside, and has left",
            example: "拿到 /curator/reentrant #1\n拿到 /curator/reentrant #2\n释放 /curator/reentrant #1\n…",
            may_be_lost: true,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(reentrant(ctx, job)),
        },
    ],
};

/// How long a visitor holds the lock: people must see in another window who waits.
const DEFAULT_STAY: Duration = Duration::from_secs(10);

fn lock(ctx: &Ctx, job: &Job) -> ZkRwLock {
    ctx.zk.rw_lock(&job.zk_path(RW_LOCK_PATH))
}

/// Takes a half and keeps it for the job's stay after the answer.
///
/// Cancel safety: Dropping it while it waits leaves nothing behind.
async fn keep_after_answer(ctx: &Ctx, job: &Job, half: impl Lock, text: &str) -> Result<Answer, Error> {
    let permit = hold_permit(ctx)?;
    let guard = half.acquire(job.wait_left()).await?;
    job.say(format_args!("{text}锁。。。。"));
    hold_after_answer(ctx, job, (guard, permit), job.request.hold, None);
    Ok(Answer::text(text))
}

/// Takes all three locks in their order, stays as long as the job says, and gives them back in the reverse order.
async fn multi(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let visit = LockVisit::with_new_owner(ctx);
    let paths = ZK_PARTS.map(|path| job.zk_path(path));
    let parts = paths.iter().map(|path| ctx.zk.lock(path).owner(visit.holder)).collect();
    let guard = MultiLock::new(parts).acquire(job.wait_left()).await?;
    visit.stay_inside(ctx, job, &paths, guard).await
}

/// Takes the lock twice, stays as long as the job says, and gives it back twice.
async fn reentrant(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let (visit, path) = (LockVisit::with_new_owner(ctx), job.zk_path(REENTRANT_PATH));
    let lock = ctx.zk.lock(&path).owner(visit.holder);
    visit.take_twice(ctx, job, &path, lock).await
}
