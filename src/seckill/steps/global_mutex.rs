#![doc = include_str!("global_mutex.md")]

use crate::seckill::*;
use oversell_lock::local::Mutexes;

pub(super) const STEP: StepSpec = StepSpec {
    course: "一人一单",
    rank: Rank::After("conditional-update"),
    promise: Promise::OneProcess,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// The one key of the in-process mutex, for all users.
#[derive(Clone, PartialEq, Eq, Hash)]
struct GlobalKey;

/// Checks the voucher, then places the order under this process's one mutex of all users.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let held = ctx.local.of::<Mutexes<GlobalKey>>().lock(&GlobalKey, order.job.wait_left()).await;
    let _held = held.ok_or_else(|| order.job.timed_out("in-process mutex of all users"))?;
    rows::create_order(ctx, order).await
}
