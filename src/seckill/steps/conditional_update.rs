//! [002] 库存超卖问题分析: the update takes a piece only where there is one, so that the stock is exact.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. `stock = stock - 1 … AND stock > 0`; no row changed: there is none left.
//! 3. Write the order.
//!
//! What it survives: any number of users on any number of instances; the row lock of the update puts them in order. **What
//! breaks it**: one user who orders twice, since nobody asks.
//!
//! Next: `global_mutex.rs`, which asks, under a lock.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, id_worker, rows},
    section::mysql,
    stock::Promise,
};

pub(super) const STEP: Step = Step {
    slug: "conditional-update",
    course: "库存超卖问题分析",
    rank: Rank::After("check-then-deduct"),
    promise: Promise::Unsafe,
    title: Bilingual {
        zh: "扣减时判断 stock > 0",
        en: "Deduct only where stock > 0",
    },
    breaks: Bilingual {
        zh: "同一个人可以买两次",
        en: "one person orders twice",
    },
    source: include_str!("conditional_update.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    order.job.inside().await;
    if mysql::execute(ctx, &order.job, rows::deduct(order)).await? == 0 {
        return Err(Error::SoldOut);
    }
    let order_id = id_worker::next(ctx, "order").await?;
    mysql::execute(ctx, &order.job, rows::insert(order, order_id)).await?;
    Ok(Ordered {
        order_id,
        lock: None,
    })
}
