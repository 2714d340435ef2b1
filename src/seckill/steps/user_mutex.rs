//! [002] 事务: one lock for each user, round the whole transaction: `synchronized (userId.toString().intern())`.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. Lock the mutex that this process has for this user.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. Unlock.
//!
//! What it survives: one user's orders at one instance; other users do not wait. **What breaks it**: a second instance, which
//! has mutexes of its own (集群).
//!
//! Next: `user_mutex_in_tx.rs`, the same lock given back a moment too early; then `redis_lock_fixed_id.rs`.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, rows},
    section::Point,
    stock::Promise,
};
use oversell_lock::local::{MutexGuard, Mutexes};

pub(super) const STEP: Step = Step {
    slug: "user-mutex",
    course: "一人一单",
    rank: Rank::After("user-mutex-new"),
    promise: Promise::OneProcess,
    title: Bilingual {
        zh: "每个用户一把锁，包住整个事务",
        en: "One process lock per user, round the transaction",
    },
    breaks: Bilingual {
        zh: "第二个实例有它自己的锁",
        en: "a second instance has locks of its own",
    },
    source: include_str!("user_mutex.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

/// The key of a user's mutex: no other step has the same ones.
#[derive(Clone, PartialEq, Eq, Hash)]
struct User(i64);

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    let _held = lock(ctx, order).await?;
    order.job.at(Point::Locked).await;
    rows::create(ctx, order).await
}

/// This process's mutex for the user, waiting for it as long as the order may.
pub(super) async fn lock(ctx: &Ctx, order: &Order) -> Result<MutexGuard, Error> {
    let held = ctx
        .local
        .of::<Mutexes<User>>()
        .lock(&User(order.user_id), order.job.wait_left())
        .await;
    held.ok_or_else(|| order.job.not_had("in-process mutex of the user"))
}
