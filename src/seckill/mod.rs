//! A seckill of vouchers (\[002\]): many users, few pieces, one order per user.
//!
//! A step of the text is one file in `steps/` with its text beside it, and registers itself; [`ALL`] drives routes, loads,
//! plans and tests: there is no second list. After a run, [`check`] says from the database and the answers whether the step
//! has kept its promise.
//!
//! In reading order: [`voucher`] and [`Order`], what is sold and what is asked for; `rows`, the statements that the steps share;
//! [`id_worker`], where the numbers of orders come from; then the steps: `check_then_deduct`, `conditional_update`, …
//! The last, `script_stream`, has its orders written behind: `voucher_in_redis`, [`stream`], [`consumer`], `write_behind`.

mod rows;
mod simple_redis_lock;

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

use crate::{
    ctx::Ctx,
    error::Error,
    registry::{Rank, RegistryEntry, Spec, in_order},
    section::{Job, LockState, Point, mysql},
    stock::Promise,
};
use futures::future::BoxFuture;
use serde::Serialize;
use std::{sync::LazyLock, time::Duration};
use utoipa::ToSchema;

/// A request to buy one piece of a voucher.
#[derive(Debug)]
pub struct Order {
    pub voucher_id: i64,
    pub user_id: i64,
    /// How long to wait and to stay inside, the lease, and the named points of a replay: `read` (the stock was enough),
    /// `checked` (the user has no order yet), `commit` (all is written, nothing committed), `committed`, and those of a
    /// step's own.
    pub job: Job,
}

/// The result of a placed order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderReceipt {
    /// Its number, from the [id worker](id_worker): in time it exceeds 2^53, beyond which JSON numbers of a browser
    /// lose digits.
    pub order_id: i64,
    /// The state of the lock at the unlock; none without a lock, or if the server did not answer.
    pub lock: Option<LockState>,
}

impl Order {
    /// An order that is asked for now; it stays inside for `hold` and waits for a lock or a row for `wait` at most.
    pub fn new(voucher_id: i64, user_id: i64, hold: Duration, wait: Duration) -> Self {
        Self { voucher_id, user_id, job: Job::new(voucher_id, hold, wait) }
    }

    /// The same, with this lease instead of the step's own.
    pub fn with_lease(self, lease: Option<Duration>) -> Self {
        Self { job: self.job.with_options(lease, None), ..self }
    }
}

/// The function of a step: places one order, or fails with the reason.
pub type PlaceOrder = for<'a> fn(&'a Ctx, &'a Order) -> BoxFuture<'a, Result<OrderReceipt, Error>>;

/// A registered step, one way to order a voucher: its name, its text and its specification.
pub type SeckillStep = RegistryEntry<StepSpec>;

/// The specification of a step.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub struct StepSpec {
    /// The section of \[002\] that it is from, or that it goes on from.
    pub course: &'static str,
    /// Its promise about the stock and about one order per user.
    pub promise: Promise,
    /// Where it stands in the text. In JSON: whether it is what the text leads to, and not in it.
    #[serde(rename = "beyond")]
    #[schema(value_type = bool)]
    pub rank: Rank,
    #[serde(skip)]
    pub place: PlaceOrder,
}

impl Spec for StepSpec {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn chapter(&self) -> &'static str {
        self.course
    }
}

/// Every step, in the text's order.
pub static ALL: LazyLock<Vec<SeckillStep>> = LazyLock::new(|| in_order(steps::FILES));

/// The step of an order that names none: the last one of the text.
pub const DEFAULT: &str = "redis-rlock";

/// The step of this slug.
pub fn find(slug: &str) -> Option<&'static SeckillStep> {
    ALL.iter().find(|step| step.slug == slug)
}
