//! [002] 一人一单: asks whether the user has an order, under one lock for all users of this process: `synchronized`.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. Lock this process's one mutex.
//! 3. In a transaction: has the user an order? Deduct, write the order, commit.
//! 4. Unlock.
//!
//! What it survives: one user's orders at one instance, any number of them. **What breaks it**: a second instance, which has
//! a mutex of its own. And it is too coarse: users who have nothing to do with each other wait in one line. (The text's
//! `@Transactional` on the same method would also unlock before it commits: `user_mutex_in_tx.rs` shows that alone.)
//!
//! Next: `user_mutex_new.rs`, a lock per user that is none.

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
    slug: "global-mutex",
    course: "一人一单",
    rank: Rank::After("conditional-update"),
    promise: Promise::OneProcess,
    title: Bilingual {
        zh: "一把锁锁住所有人",
        en: "One process lock for all users",
    },
    breaks: Bilingual {
        zh: "锁的粒度太粗；第二个实例有它自己的锁",
        en: "too coarse; and a second instance has a lock of its own",
    },
    source: include_str!("global_mutex.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

/// The key of the one mutex.
#[derive(Clone, PartialEq, Eq, Hash)]
struct All;

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    let held = ctx
        .local
        .of::<Mutexes<All>>()
        .lock(&All, order.job.wait_left())
        .await;
    let _held = held.ok_or_else(|| order.job.not_had("in-process mutex of all users"))?;
    rows::create(ctx, order).await
}
