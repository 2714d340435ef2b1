//! [002] 分布式锁-redission: the lock of Redisson, which is renewed while its holder lives.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. `getLock("lock:order:" + userId).tryLock()`: without a wait; another order of the user has it: 不允许重复下单.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. Release.
//!
//! What it survives: any number of instances, an order longer than the lease (the watchdog renews it), a holder that dies.
//! **What breaks it**: a holder that is paused beyond its lease and then writes; a primary that fails before its replica has
//! the key. Nothing in the database would refuse that second order.
//!
//! Next: `unique_key.rs`, where the database does.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, rows, simple_redis_lock},
    section::{LockState, Point},
    stock::Promise,
};
use oversell_lock::{Lock, LockError};

pub(super) const STEP: Step = Step {
    slug: "redis-rlock",
    course: "分布式锁-redission",
    rank: Rank::After("redis-lock-lua"),
    promise: Promise::Lease,
    title: Bilingual {
        zh: "Redisson 的锁：tryLock，自动续期",
        en: "Redisson's lock: one try, renewed",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过租约",
        en: "a holder that is paused beyond its lease",
    },
    source: include_str!("redis_rlock.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    let lock = ctx
        .redis
        .lock(&simple_redis_lock::name(order))
        .lease(order.job.watchdog(ctx));
    let guard = lock.try_acquire().await.map_err(|error| match error {
        LockError::Taken { .. } => Error::OrderUnderWay,
        error => error.into(),
    })?;
    let placed = rows::create(ctx, order).await;
    order.job.at(Point::Unlock).await;
    let lock = match guard.release().await {
        Ok(()) => Some(LockState::Kept),
        Err(error) => {
            tracing::warn!(%error, "the lock was not released cleanly");
            matches!(error, LockError::Lost { .. }).then_some(LockState::Lost)
        }
    };
    Ok(Ordered { lock, ..placed? })
}
