//! `[004]` demo3, demo4: the lock is one line at the route, and the work does not know of it.
//!
//! 1. A layer ([`LockLayer`](oversell_lock::tower::LockLayer)) takes the lock before the work begins and gives it back when
//!    it is done. The text does so by an annotation and an aspect.
//! 2. demo3 says no key: it is the route's, `GET /demo3`. demo4's is made of the request's parameters,
//!    `demo4#{whId}_{sku}`: so different goods do not wait for each other. As in the text it is made of their values: warehouse
//!    01 is warehouse 1.
//! 3. Five seconds of work under a lease of ten, which is not renewed, as in the text.
//!
//! The layer keeps nothing of a key; the text's factory has a map that grows with each. What it survives: a client that hangs
//! up; work longer than its lease, which is ended there, while nobody else is inside yet. **What breaks it**: a process that
//! stands still beyond the lease. A reset clears demo3's lock; demo4's are as many as there are goods, and go with their
//! leases.
//!
//! Next: `oversell_lock::tower`.

use crate::{
    classroom::demo1::LEASE,
    ctx::Ctx,
    section::{Job, Name},
};
use oversell_lock::{Lease, redis::RedisLock, tower::escape};

/// The name of demo4's lock for these parameters.
pub fn key_by_parameters(warehouse: i64, sku: &str) -> String {
    format!("demo4#{warehouse}_{}", escape(sku))
}

/// The lock name that the layer derives from the route of demo3.
pub const LOCK_NAME_BY_ROUTE: &str = "GET /demo3";

/// The names that a reset clears: that of demo3 alone.
pub(super) const NAMES: &[Name] = &[Name::Redis(LOCK_NAME_BY_ROUTE)];

/// The lock of this name for this job's product, with the requested lease, else the text's; it is not renewed.
pub fn lock(ctx: &Ctx, job: &Job, name: &str) -> RedisLock {
    ctx.redis.lock(&job.redis_name(name)).lease(Lease::Fixed(job.request.lease.unwrap_or(LEASE)))
}
