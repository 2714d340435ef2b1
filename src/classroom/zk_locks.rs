//! §3.5, 3.7.3, 3.7.4 Curator's locks to try from several browser windows: readers and writers, several locks as one, one
//! lock twice.
//!
//! 1. [`read()`] and [`write()`]: take a half of `/curator/rwlock`, answer, and keep it for ten seconds more. ZooKeeper knows
//!    no lease, so the instance gives it back itself.
//! 2. [`multi`]: take `/curator/multi/1`, `/2`, `/3` as one; stay; give them back in the reverse order.
//! 3. [`reentrant`]: take `/curator/reentrant` twice as one owner. The numbers are the owner's holds; the server sees one
//!    node all the time.
//!
//! What it survives: an instance that dies (its session ends, and its nodes with it); one that is told to end gives back
//! what it keeps.
//!
//! Next: `oversell_lock::zk::ZkRwLock`, then `zk_semaphore.rs`.

use super::{
    stay::leave,
    visit::{Did, Visit},
};
use crate::{
    ctx::Ctx,
    error::Error,
    stock::{Job, Name, ZK_PARTS},
};
use oversell_lock::{Lock, MultiLock};
use std::time::Duration;

const READ_WRITE: &str = "/curator/rwlock";
const REENTRANT: &str = "/curator/reentrant";

pub(super) const NAMES: &[Name] = &[
    Name::ZooKeeper(READ_WRITE),
    Name::ZooKeeper(REENTRANT),
    Name::ZooKeeper(ZK_PARTS[0]),
    Name::ZooKeeper(ZK_PARTS[1]),
    Name::ZooKeeper(ZK_PARTS[2]),
];

/// How long a half of the read-write lock is kept after the answer, where the request does not say.
pub const KEPT: Duration = Duration::from_secs(10);

/// Takes the read half and keeps it for the job's stay after the answer.
///
/// # Errors
///
/// [`Error::NotHad`] where a writer has it for all of the job's wait, [`Error::Unavailable`] where ZooKeeper is down.
///
/// # Cancel safety
///
/// Dropping it while it waits leaves nothing behind.
pub async fn read(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let lock = ctx.zk.rw_lock(&job.zk_path(READ_WRITE));
    let guard = lock.read().acquire(job.wait_left()).await?;
    job.say("测试读锁。。。。");
    leave(ctx, job, guard, job.hold, None);
    Ok(())
}

/// Takes the write half and keeps it for the job's stay after the answer.
///
/// # Errors
///
/// [`Error::NotHad`] where others have it for all of the job's wait, [`Error::Unavailable`] where ZooKeeper is down.
///
/// # Cancel safety
///
/// Dropping it while it waits leaves nothing behind.
pub async fn write(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let lock = ctx.zk.rw_lock(&job.zk_path(READ_WRITE));
    let guard = lock.write().acquire(job.wait_left()).await?;
    job.say("测试写锁。。。。");
    leave(ctx, job, guard, job.hold, None);
    Ok(())
}

/// Takes all three locks in their order, stays as long as the job says, and gives them back in the reverse order.
///
/// # Errors
///
/// [`Error::NotHad`] where one was not had within the job's wait: then none is held. [`Error::Unavailable`] where
/// ZooKeeper is down.
///
/// # Cancel safety
///
/// Dropping it leaves nothing behind.
pub async fn multi(ctx: &Ctx, job: &Job) -> Result<Visit, Error> {
    let mut visit = Visit::of(ctx);
    let paths = ZK_PARTS.map(|path| job.zk_path(path));
    let parts = paths
        .iter()
        .map(|path| ctx.zk.lock(path).owner(visit.holder))
        .collect();
    let guard = MultiLock::new(parts).acquire(job.wait_left()).await?;
    let ordered = || paths.iter().zip([1, 2, 3]);
    for (path, order) in ordered() {
        visit.step(job, Did::Took, path, order);
    }
    job.inside().await;
    job.leave();
    guard.release().await?;
    for (path, order) in ordered().rev() {
        visit.step(job, Did::Left, path, order);
    }
    Ok(visit)
}

/// Takes the lock twice, stays as long as the job says, and gives it back twice.
///
/// # Errors
///
/// [`Error::NotHad`] where another has it for all of the job's wait, [`Error::Unavailable`] where ZooKeeper is down.
///
/// # Cancel safety
///
/// Dropping it leaves nothing behind.
pub async fn reentrant(ctx: &Ctx, job: &Job) -> Result<Visit, Error> {
    let (mut visit, path) = (Visit::of(ctx), job.zk_path(REENTRANT));
    let lock = ctx.zk.lock(&path).owner(visit.holder);
    let outer = lock.acquire(job.wait_left()).await?;
    visit.step(job, Did::Took, &path, 1);
    let inner = lock.acquire(job.wait_left()).await?;
    visit.step(job, Did::Took, &path, 2);
    job.say("测试可重入锁。。。。");
    job.inside().await;
    job.leave();
    for (guard, left) in [(inner, 1), (outer, 0)] {
        guard.release().await?;
        visit.step(job, Did::Left, &path, left);
    }
    Ok(visit)
}
