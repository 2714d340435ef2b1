#![doc = include_str!("redis_rlock.md")]

use crate::seckill::*;
use crate::{seckill::simple_redis_lock, section::LockState};
use oversell_lock::LockError;

pub(super) const STEP: StepSpec = StepSpec {
    course: "分布式锁-redission",
    rank: Rank::After("redis-lock-lua"),
    promise: Promise::Lease,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Places the order under the library's lock of the user; [`SeckillError::OrderUnderWay`] if it is taken.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let lock = ctx.redis.lock(&simple_redis_lock::lock_name(order)).lease(order.job.watchdog_lease(ctx));
    let guard = lock.try_acquire().await.map_err(|error| match error {
        LockError::Taken { .. } => Error::from(SeckillError::OrderUnderWay),
        error => error.into(),
    })?;
    let placed = rows::create_order(ctx, order).await;
    order.job.reach(Point::Unlock).await;
    let lock = LockState::at_release(guard).await;
    Ok(OrderReceipt { lock, ..placed? })
}
