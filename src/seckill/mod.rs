//! A seckill of vouchers (\[002\]): many users, few pieces, one order per user.
//!
//! A step of the text is one file with one constant, [`Step`]; [`ALL`] drives routes, loads, plans and tests: there is no
//! second list. After a run, [`check`] says from the database and the answers whether the step has kept its promise.
//!
//! In reading order: [`voucher`] and [`Order`], what is sold and what is asked for; `rows`, the statements that the steps share;
//! [`id_worker`], where the numbers of orders come from; then the steps: `check_then_deduct`, `conditional_update`, …
//! The last, `script_stream`, has its orders written behind: `voucher_in_redis`, [`stream`], [`consumer`], `write_behind`.

mod order;
mod rows;
mod simple_redis_lock;
mod step;

pub mod check;
pub mod consumer;
pub mod id_worker;
pub mod stream;
pub mod voucher;
mod voucher_in_redis;
mod write_behind;

mod check_then_deduct;
mod conditional_update;
mod global_mutex;
mod redis_lock_fixed_id;
mod redis_lock_lua;
mod redis_lock_owner;
mod redis_rlock;
mod script_stream;
mod unique_key;
mod user_mutex;
mod user_mutex_in_tx;
mod user_mutex_new;

pub use order::{Order, Ordered};
pub use step::{Place, Step};

/// Every step, in the text's order.
pub const ALL: &[Step] = &[
    check_then_deduct::STEP,
    conditional_update::STEP,
    global_mutex::STEP,
    user_mutex_new::STEP,
    user_mutex::STEP,
    user_mutex_in_tx::STEP,
    redis_lock_fixed_id::STEP,
    redis_lock_owner::STEP,
    redis_lock_lua::STEP,
    redis_rlock::STEP,
    unique_key::STEP,
    script_stream::STEP,
];

/// The step of an order that names none: what the text ends with.
pub const DEFAULT: &str = "redis-rlock";

/// The step of this name.
#[must_use]
pub fn find(slug: &str) -> Option<&'static Step> {
    ALL.iter().find(|step| step.slug == slug)
}
