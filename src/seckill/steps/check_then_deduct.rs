//! [002] 实现秒杀下单: looks whether there is stock, then takes a piece whatever there is by then.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. `stock = stock - 1`.
//! 3. Write the order.
//!
//! What it survives: users who come one after the other. **What breaks it**: two who both read the last piece before either
//! takes it: both take it, and the stock is -1 (线程1, 线程2 of the text). And nobody asks whether the user has an order.
//!
//! Next: `conditional_update.rs`, where the update itself looks.

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
    slug: "check-then-deduct",
    course: "实现秒杀下单",
    rank: Rank::Course,
    promise: Promise::Unsafe,
    title: Bilingual {
        zh: "先查库存，再扣减",
        en: "Look at the stock, then deduct",
    },
    breaks: Bilingual {
        zh: "查询与扣减之间：超卖",
        en: "between the look and the deduction: it oversells",
    },
    source: include_str!("check_then_deduct.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

const DEDUCT: &str = "UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = ?";

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    order.job.inside().await;
    mysql::execute(ctx, &order.job, sqlx::query(DEDUCT).bind(order.voucher_id)).await?;
    let order_id = id_worker::next(ctx, "order").await?;
    mysql::execute(ctx, &order.job, rows::insert(order, order_id)).await?;
    Ok(Ordered {
        order_id,
        lock: None,
    })
}
