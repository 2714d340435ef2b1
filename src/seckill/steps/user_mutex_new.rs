#![doc = include_str!("user_mutex_new.md")]

use crate::seckill::*;
use oversell_lock::local::Mutexes;

pub(super) const STEP: StepSpec = StepSpec {
    course: "一人一单",
    rank: Rank::After("global-mutex"),
    promise: Promise::Unsafe,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Places the order under a mutex made for it, which no other order waits for.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let locks = Mutexes::default();
    let _held = locks.lock(&order.user_id, order.job.wait_left()).await;
    order.job.reach(Point::Locked).await;
    rows::create_order(ctx, order).await
}
