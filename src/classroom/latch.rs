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

use crate::{
    ctx::Ctx,
    error::Error,
    stock::{Job, Name},
    visits::Happened,
};
use oversell_lock::{LockError, redis::RedisLatch};
use std::{num::NonZeroU32, time::Duration};

const LATCH: &str = "latch";

pub(super) const NAMES: &[Name] = &[Name::RedisCount(LATCH)];

/// How long the monitor waits, where the request does not say: people walk out one by one.
pub const WAIT: Duration = Duration::from_secs(600);

/// How many are in a class.
pub const CLASS: NonZeroU32 = NonZeroU32::new(6).expect("not zero");

/// A latch that others open just now is set anew so often, before that is called a fault.
const TRIES: usize = 100;

/// Waits until all of the class are out.
///
/// # Errors
///
/// [`Error::NotHad`] where some stay in for all of the job's wait, [`Error::Unavailable`] where Redis is down.
///
/// # Cancel safety
///
/// Safe: the count stays as it is.
pub async fn lock_the_door(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let latch = latch(ctx, job);
    latch.try_set_count(CLASS).await?;
    job.say("班长等同学们出来");
    latch.wait(job.wait_left()).await?;
    job.say("班长锁门。。。");
    job.inside().await;
    Ok(())
}

/// Goes out: how many are still in.
///
/// # Errors
///
/// [`Error::Unavailable`] where Redis is down, [`Error::Unknown`] where it did not answer the count-down.
///
/// # Cancel safety
///
/// Dropping it, it may have counted or not.
pub async fn go_out(ctx: &Ctx, job: &Job) -> Result<u64, Error> {
    let latch = latch(ctx, job);
    for _ in 0..TRIES {
        latch.try_set_count(CLASS).await?;
        match latch.count_down().await {
            Ok(Some(left)) => {
                job.say(format_args!("出来了一位同学，还有 {left} 位"));
                job.note(Happened::Count, left);
                job.inside().await;
                return Ok(left);
            }
            // Others have opened it between the two commands.
            Ok(None) => {}
            Err(LockError::Unavailable { server, reason }) => {
                return Err(Error::Unknown {
                    server,
                    reason: reason.to_string(),
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Internal(format!(
        "latch {} was open {TRIES} times after it was set",
        latch.name()
    )))
}

/// How many are still in; none where no class has begun, or all are out.
///
/// # Errors
///
/// [`Error::Unavailable`] where Redis is down.
///
/// # Cancel safety
///
/// Safe.
pub async fn still_in(ctx: &Ctx) -> Result<u64, Error> {
    Ok(ctx.redis.latch(LATCH).get_count().await?)
}

fn latch(ctx: &Ctx, job: &Job) -> RedisLatch {
    ctx.redis.latch(&job.redis_name(LATCH))
}
