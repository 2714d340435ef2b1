//! \[003\] Limits: how many requests are let through to the seckill, and when. The answer to a refused one is 很遗憾，没抢到.
//!
//! 1. `token_bucket.rs`: ten a second in each instance, by governor.
//! 2. `shared.rs`: ten a second in all instances together, by the library's rate limiter in Redis.
//! 3. nginx limits before an instance hears of anything, at addresses of its own ([`NGINX_ONLY_ROUTES`]; `nginx/templates/` says
//!    how): the leaky bucket, whose requests wait for their turn, the same without delay, and requests at once.
//!
//! What it survives: each stands alone; who was let through by one is not counted by another. **What breaks it**: a
//! limit on the rate does not limit how many are inside at once, nor the other way round: where requests get slow, they
//! pile up behind it.
//!
//! Next: `token_bucket.rs`.

mod shared;
mod token_bucket;

pub use shared::pass as pass_shared;
pub(crate) use shared::pass_limiter;
pub(crate) use token_bucket::Bucket;
pub use token_bucket::pass;

use std::num::NonZeroU32;

/// Requests per second that each limit lets through.
pub const REQUESTS_PER_SECOND: NonZeroU32 = NonZeroU32::new(10).expect("more than none");

/// The addresses of the limits that only nginx has.
pub const NGINX_ONLY_ROUTES: &[&str] =
    &["/nginx/leaky/queued", "/nginx/leaky/nodelay", "/nginx/connections/address", "/nginx/connections/server"];
