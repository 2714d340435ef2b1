//! [003] One limit for all instances: the rate limiter of `oversell-lock`, in Redis.
//!
//! 1. The rate is set once, by whoever comes first: ten in any second, of all processes.
//! 2. A request is let through if fewer than ten were within the last second, by the clock of Redis; else it is refused
//!    at once.
//!
//! Its window slides: ten come through at once, then nobody until they are a second old, then ten again. The token
//! bucket lets one through every 100 ms instead, and up to twenty within one second.
//!
//! What it survives: any number of instances; a Redis that was emptied (the rate is set again). **What breaks it**:
//! Redis is down: nobody is let through (503), since nobody knows how many were. And each request costs a round trip.
//!
//! Next: `oversell_lock::redis::RateLimiter`, then nginx's limits in `nginx/templates/oversell.conf.template`.

use super::REQUESTS_PER_SECOND;
use crate::{ctx::Ctx, error::Error};
use oversell_lock::LockError;
use std::{num::NonZeroU32, time::Duration};

const LIMITER_NAME: &str = "seckillLimited";

/// Asks the limiter of all instances to let one request through.
/// Errors: [`Error::Limited`] if ten were within the last second, [`Error::Unavailable`] if Redis is down.
/// Cancel safety: if dropped, a permit may be spent without a request.
pub async fn pass(ctx: &Ctx) -> Result<(), Error> {
    pass_limiter(ctx, LIMITER_NAME, Duration::from_secs(1)).await
}

/// Asks the limiter of this name to let one request through; [`Error::Limited`] if its rate is used up. Sets the rate to ten
/// within `window` if none is set yet; a rate that is set stays, whatever its window.
pub(crate) async fn pass_limiter(ctx: &Ctx, name: &str, window: Duration) -> Result<(), Error> {
    let limiter = ctx.redis.rate_limiter(name);
    let admitted = match limiter.try_acquire(NonZeroU32::MIN).await {
        // No rate is set yet.
        Err(LockError::Invalid { .. }) => {
            limiter.try_set_rate(REQUESTS_PER_SECOND, window).await?;
            limiter.try_acquire(NonZeroU32::MIN).await?
        }
        answered => answered?,
    };
    if admitted { Ok(()) } else { Err(Error::Limited) }
}
