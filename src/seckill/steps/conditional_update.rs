#![doc = include_str!("conditional_update.md")]

use crate::seckill::*;

pub(super) const STEP: StepSpec = StepSpec {
    course: "库存超卖问题分析",
    rank: Rank::After("check-then-deduct"),
    promise: Promise::Unsafe,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Checks the voucher, takes a piece if one is left, and writes the order, each by itself.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    order.job.enter_and_stay().await;
    if mysql::execute(ctx, &order.job, rows::deduct_statement(order)).await? == 0 {
        return Err(Error::SoldOut);
    }
    let order_id = id_worker::next_id(ctx, id_worker::ORDERS).await;
    let order_id = order_id.map_err(Error::after_piece_was_taken)?;
    let written = mysql::execute(ctx, &order.job, rows::insert_statement(order, order_id)).await;
    written.map_err(Error::after_piece_was_taken)?;
    Ok(OrderReceipt { order_id, lock: None })
}
