#![doc = include_str!("user_mutex.md")]

use crate::seckill::*;
use oversell_lock::local::{MutexGuard, Mutexes};

pub(super) const STEP: StepSpec = StepSpec {
    course: "一人一单",
    rank: Rank::After("user-mutex-new"),
    promise: Promise::OneProcess,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// The key of a user's mutex, in a map that no other step uses.
#[derive(Clone, PartialEq, Eq, Hash)]
struct UserKey(i64);

/// Checks the voucher, then places the order, commit included, under the user's mutex.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let _held = lock(ctx, order).await?;
    order.job.reach(Point::Locked).await;
    rows::create_order(ctx, order).await
}

/// Locks this process's mutex of the user, waiting for it as long as the order may.
pub(super) async fn lock(ctx: &Ctx, order: &Order) -> Result<MutexGuard, Error> {
    order.job.reach(Point::Waits).await;
    let held = ctx.local.of::<Mutexes<UserKey>>().lock(&UserKey(order.user_id), order.job.wait_left()).await;
    held.ok_or_else(|| order.job.timed_out("in-process mutex of the user"))
}
