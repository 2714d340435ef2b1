//! [003] The token bucket: ten tokens a second; who gets one is let through, and nobody waits.
//!
//! 1. A bucket holds ten tokens at most, and one flows in every 100 ms.
//! 2. A request takes a token, or is refused at once.
//!
//! So after a quiet second ten come through at once, and then one every 100 ms. (governor keeps no tokens: it reckons
//! when the next one would be there, by the generic cell rate algorithm, which comes to the same.)
//!
//! What it survives: a burst; nothing is queued, and nobody holds anything while it waits. **What breaks it**: several
//! instances: each has a bucket of its own, and three let thirty through in a second.
//!
//! Next: `shared.rs`, one limit for all instances.

use super::REQUESTS_PER_SECOND;
use crate::{ctx::Ctx, error::Error};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// A bucket of ten tokens, into which one flows every 100 ms.
const QUOTA: Quota = Quota::per_second(REQUESTS_PER_SECOND);

/// A token bucket in this process, full at first.
pub(crate) struct Bucket(DefaultDirectRateLimiter);

impl Default for Bucket {
    fn default() -> Self {
        Self(RateLimiter::direct(QUOTA))
    }
}

impl Bucket {
    /// Takes a token; [`Error::Limited`] if there is none.
    pub(crate) fn pass(&self) -> Result<(), Error> {
        self.0.check().map_err(|_| Error::Limited)
    }
}

/// Takes a token of this instance's bucket.
/// Errors: [`Error::Limited`] if there is none.
pub fn pass(ctx: &Ctx) -> Result<(), Error> {
    ctx.local.of::<Bucket>().pass()
}
