//! §2.10.3, 2.10.4 Several locks as one: all of three names, or most of five nodes.
//!
//! 1. Take the multi lock, or Redlock, as one holder.
//! 2. Ask Redis which parts this holder has; stay.
//! 3. Release.
//!
//! Next: `oversell_lock::MultiLock` and `oversell_lock::redis::Redlock`, then `reentrant.rs`.

use crate::classroom::*;
use crate::{classroom::window::VisitAction, stock::PARTS};
use futures::future::join_all;
use oversell_lock::{MultiLock, redis::RedlockClient};
use redis::AsyncCommands;

/// The name of the Redlock on the five nodes.
const RED_LOCK: &str = "redLock";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::Redis(PARTS[0]), Name::Redis(PARTS[1]), Name::Redis(PARTS[2]), Name::RedisNodes(RED_LOCK)],
    windows: &[
        WindowAddress {
            path: "/test/multi",
            object: "lock1,lock2,lock3",
            summary: "Takes three locks as one.",
            done: "It was inside, and has left",
            example: "拿到 lock1 #1\n拿到 lock2 #2\n拿到 lock3 #3\n释放 lock3 #3\n…",
            may_be_lost: true,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(take_all_and_stay(ctx, job)),
        },
        WindowAddress {
            path: "/test/red",
            object: RED_LOCK,
            summary: "Takes a lock on most of five nodes, and says on which.",
            done: "It was inside, and has left",
            example: "拿到 redLock #1\n拿到 redLock #2\n拿到 redLock #4\n…",
            may_be_lost: true,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(take_majority_and_stay(ctx, job)),
        },
    ],
};

/// Takes all three locks in their order, stays as long as the job says, and gives them back in the reverse order.
async fn take_all_and_stay(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let visit = LockVisit::with_new_owner(ctx);
    let names = PARTS.map(|name| job.redis_name(name));
    let parts = names.iter().map(|name| ctx.redis.lock(name).owner(visit.holder).lease(job.watchdog_lease(ctx))).collect();
    let guard = MultiLock::new(parts).acquire(job.wait_left()).await?;
    visit.stay_inside(ctx, job, &names, guard).await
}

/// Takes `redLock` on a majority of the nodes, stays as long as the job says, and gives it back. The steps name the nodes that
/// say that this process has it, counted from 1 in the order of the configuration; the last step, the release, has number 0.
async fn take_majority_and_stay(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let (mut visit, name) = (LockVisit::with_new_owner(ctx), job.redis_name(RED_LOCK));
    let lock = RedlockClient::new(&ctx.nodes)?.lock(&name).owner(visit.holder).lease(job.watchdog_lease(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    // The field in a node is the identity of this hold, which begins with the process.
    let (key, process) = (ctx.redis_key(&name), ctx.process.to_string());
    let nodes = ctx.nodes.iter().map(|node| {
        let (mut node, key, process) = (node.connection(), &key, &process);
        async move { node.hkeys(key).await.is_ok_and(|ids: Vec<String>| ids.iter().any(|id| id.starts_with(process))) }
    });
    for (has_it, order) in join_all(nodes).await.into_iter().zip(1..) {
        if has_it {
            visit.record_step(job, VisitAction::Acquired, &name, order);
        }
    }
    job.enter_and_stay().await;
    job.leave();
    guard.release().await?;
    visit.record_step(job, VisitAction::Released, &name, 0);
    Ok(visit.answer(ctx))
}
