//! §2.10.7 The monitor locks the door once all six are out.
//!
//! 1. Whoever comes first, monitor or classmate, sets the count to six; where it is set already, nothing changes.
//! 2. A classmate counts down by one. The sixth opens the latch, which deletes it: so the next class begins with the
//!    next request, of either kind, which sets it to six anew.
//! 3. The monitor waits until the latch that it found was opened, even where the next class has begun meanwhile.
//!
//! What it survives: a monitor that hangs up or gives up (the count stays as it is); several monitors; seven classmates
//! at once (the seventh is the next class's first). **What breaks it**: a count-down that gets no answer: it may have
//! counted, and the answer says that this is unknown. `PUT /stock` deletes the latch, and so opens it.
//!
//! Next: `oversell_lock::redis::RedisLatch`.

use crate::classroom::*;
use crate::{classroom::zk_atomic::classify_write, visits::VisitEventKind};
use oversell_lock::redis::RedisLatch;
use std::num::NonZeroU32;

const LATCH: &str = "latch";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::RedisCount(LATCH)],
    windows: &[
        WindowAddress {
            path: "/test/latch",
            object: LATCH,
            summary: "Waits until six have gone out, and locks the door.",
            done: "All six are out",
            example: "班长锁门。。。",
            may_be_lost: false,
            wait: Some(DEFAULT_WAIT),
            stay: None,
            visit: |ctx, job| Box::pin(wait_until_all_are_out(ctx, job)),
        },
        WindowAddress {
            path: "/test/countdown",
            object: LATCH,
            summary: "One goes out. The first of a class sets the count to six.",
            done: "One less is in",
            example: "出来了一位同学",
            may_be_lost: false,
            wait: None,
            stay: None,
            visit: |ctx, job| Box::pin(go_out(ctx, job)),
        },
    ],
};

/// The default wait of the monitor: people walk out one by one.
const DEFAULT_WAIT: Duration = Duration::from_secs(600);

/// How many must go out before the door is locked.
const CLASS_SIZE: NonZeroU32 = NonZeroU32::new(6).expect("not zero");

/// How often the count is set again if others open the latch at that moment; then the request fails.
const MAX_ATTEMPTS: usize = 100;

/// Sets the count to six if none is set, and waits until all six are out.
async fn wait_until_all_are_out(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let latch = latch(ctx, job);
    latch.try_set_count(CLASS_SIZE).await?;
    renew_expiry(ctx, &job.redis_name(LATCH), "opened").await?;
    job.say("班长等同学们出来");
    latch.wait(job.wait_left()).await?;
    job.say("班长锁门。。。");
    job.enter_and_stay().await;
    Ok(Answer::with_details("班长锁门。。。", Some(0), None))
}

/// Goes out, and says how many are still in; the first of a class sets the count to six.
///
/// Cancel safety: Dropping it, it may have counted or not.
async fn go_out(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let latch = latch(ctx, job);
    for _ in 0..MAX_ATTEMPTS {
        latch.try_set_count(CLASS_SIZE).await?;
        renew_expiry(ctx, &job.redis_name(LATCH), "opened").await?;
        // None: others opened it between the two commands.
        if let Some(left) = classify_write(latch.count_down().await)? {
            job.say(format_args!("出来了一位同学，还有 {left} 位"));
            job.report_to_class(VisitEventKind::Count, left);
            job.enter_and_stay().await;
            return Ok(Answer::with_details("出来了一位同学", Some(left), None));
        }
    }
    Err(Error::Internal(format!("latch {} was open {MAX_ATTEMPTS} times after it was set", latch.name())))
}

/// How many are still inside at the latch of product 1; 0 if no class has begun, or all are out.
pub async fn latch_count(ctx: &Ctx) -> Result<u64, Error> {
    Ok(ctx.redis.latch(LATCH).get_count().await?)
}

fn latch(ctx: &Ctx, job: &Job) -> RedisLatch {
    ctx.redis.latch(&job.redis_name(LATCH))
}
