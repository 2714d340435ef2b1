//! A seckill of vouchers (\[002\]): many users, few pieces, one order per user.
//!
//! A step of the text is one file in `steps/` with its text beside it, and registers itself; [`ALL`] drives routes, loads, plans and tests: there is no
//! second list. After a run, [`check`] says from the database and the answers whether the step has kept its promise.
//!
//! In reading order: [`voucher`] and [`Order`], what is sold and what is asked for; `rows`, the statements that the steps share;
//! [`id_worker`], where the numbers of orders come from; then the steps: `check_then_deduct`, `conditional_update`, …
//! The last, `script_stream`, has its orders written behind: `voucher_in_redis`, [`stream`], [`consumer`], `write_behind`.

mod order;
mod prelude;
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

/// Each file of `steps/`.
mod steps {
    include!(concat!(env!("OUT_DIR"), "/steps.rs"));
}

pub use crate::error::SeckillError;
pub use order::{Order, OrderReceipt};
pub use step::{PlaceOrder, SeckillStep, StepSpec};

use crate::registry::in_order;
use std::sync::LazyLock;

/// Every step, in the text's order.
pub static ALL: LazyLock<Vec<SeckillStep>> = LazyLock::new(|| in_order(steps::FILES));

/// The step of an order that names none: what the text ends with.
pub const DEFAULT: &str = "redis-rlock";

/// The step of this name.
#[must_use]
pub fn find(slug: &str) -> Option<&'static SeckillStep> {
    ALL.iter().find(|step| step.slug == slug)
}
