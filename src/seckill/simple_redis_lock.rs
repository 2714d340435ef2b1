//! Shared by the three versions of the text's `SimpleRedisLock`: the name of the lock, one try, and the work under it.
//!
//! 1. Look at the voucher.
//! 2. Try the lock `lock:order:` + user once. Another order of the user has it: 不允许重复下单.
//! 3. The transaction; then the unlock, and what it found: `kept` or `lost`.
//!
//! A caller that goes away unlocks in the background. Points for a replay, besides those of the transaction: `locked`; `unlock`,
//! before the unlock; in `redis-lock-owner` and `redis-lock-lua` also `compared`.
//!
//! Next: `redis_lock_fixed_id.rs`, the first version.

use super::{Order, OrderReceipt, SeckillError, rows};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{
        Point,
        redis_polling::{self, Lock, LockCommands},
    },
};
use std::{sync::Arc, time::Duration};

/// The lease of the text.
const LEASE: Duration = Duration::from_secs(1200);

/// The name of a user's lock: of the user alone, whatever the voucher.
pub(super) fn lock_name(order: &Order) -> String {
    format!("lock:order:{}", order.user_id)
}

/// Tries once to take the lock of the order's user, and places the order under it. Fails with
/// [`SeckillError::OrderUnderWay`] if the lock is taken.
pub(super) async fn place_under_lock<S: LockCommands>(ctx: &Ctx, order: &Order, commands: S) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let lock = Lock::for_all_products(ctx, &order.job, &lock_name(order), LEASE, commands);
    let held = redis_polling::try_once(ctx, &order.job, &Arc::new(lock)).await?.ok_or(SeckillError::OrderUnderWay)?;
    order.job.reach(Point::Locked).await;
    let placed = rows::create_order(ctx, order).await;
    order.job.reach(Point::Unlock).await;
    let found = held.unlock().await;
    Ok(OrderReceipt { lock: found, ..placed? })
}
