//! §2.10.6 Three places in the room: who finds none waits until somebody leaves.
//!
//! 1. Take one of three permits, waiting for it; where none are set, the try sets them first, in one step.
//! 2. Stay; give it back.
//!
//! What it survives: a client that hangs up, inside or waiting; a reset of the stock, after which there are three again
//! whatever the holders from before it do. **What breaks it**: an instance that is killed takes its permits with it, and
//! the room stays smaller until `PUT /stock`, or until nobody has come for a day: a plain semaphore has no lease.
//!
//! Next: `oversell_lock::redis::RedisSemaphore`, then `latch.rs`.

use crate::classroom::*;
use redis::AsyncCommands;
use std::time::{SystemTime, UNIX_EPOCH};

const SEMAPHORE: &str = "semaphore";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::RedisCount(SEMAPHORE)],
    windows: &[WindowAddress {
        path: "/test/semaphore",
        object: SEMAPHORE,
        summary: "Three are inside at once, each for five seconds.",
        done: "It held a permit, and has released it",
        example: "测试信号量",
        may_be_lost: false,
        wait: None,
        stay: Some(|| DEFAULT_STAY),
        visit: |ctx, job| Box::pin(visit(ctx, job)),
    }],
};

/// The course's: three places.
const PERMITS: u32 = 3;

/// The course's `TimeUnit.SECONDS.sleep(5)`.
const DEFAULT_STAY: Duration = Duration::from_secs(5);

/// Comes in, stays as long as the job says, and leaves.
///
/// Cancel safety: Dropping it gives the permit back in the background.
async fn visit(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let name = job.redis_name(SEMAPHORE);
    let semaphore = ctx.redis.semaphore(&name).initially(PERMITS).without_lease();
    let permit = semaphore.acquire(1, job.wait_left()).await?;
    renew_expiry(ctx, &name, "claims").await?;
    job.say("拿到了信号量");
    job.enter_and_stay().await;
    // The course prints the time here.
    job.say(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis());
    job.leave();
    if let Err(error) = permit.release().await {
        tracing::warn!(%error, "the permit was not given back cleanly");
    }
    Ok(Answer::text("测试信号量"))
}

/// The free permits of product 1's semaphore; all of them if nobody has come yet.
pub async fn free_permits(ctx: &Ctx) -> Result<i64, Error> {
    let free: Option<i64> = ctx.redis.connection().get(ctx.redis_key(SEMAPHORE)).await?;
    Ok(free.unwrap_or(i64::from(PERMITS)))
}
