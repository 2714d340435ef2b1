//! [002] 粒度: a lock per user, but a new lock object for each call: `synchronized (userId.toString())`.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. Make a lock for this user, and lock it.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. Unlock.
//!
//! What it survives: no more than without a lock. **What breaks it**: two orders of one user. Each locks an object that nobody
//! else has, so both find no order, and both write one.
//!
//! Next: `user_mutex.rs`, where the same user finds the same lock (`intern()`).

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, rows},
    stock::Promise,
};
use oversell_lock::local::Mutexes;

pub(super) const STEP: Step = Step {
    slug: "user-mutex-new",
    course: "一人一单",
    rank: Rank::After("global-mutex"),
    promise: Promise::Unsafe,
    title: Bilingual {
        zh: "每次都 new 一把锁：userId.toString()",
        en: "A new lock object for each call",
    },
    breaks: Bilingual {
        zh: "不是同一把锁，等于没锁",
        en: "not the same lock: it locks nothing",
    },
    source: include_str!("user_mutex_new.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    let locks = Mutexes::default();
    let _held = locks.lock(&order.user_id, order.job.wait_left()).await;
    rows::create(ctx, order).await
}
