#![doc = include_str!("check_then_deduct.md")]

use crate::seckill::*;

pub(super) const STEP: StepSpec = StepSpec {
    course: "实现秒杀下单",
    rank: Rank::Course,
    promise: Promise::Unsafe,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Takes a piece, whether or not one is left.
const DEDUCT: &str = "UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = ?";

/// Checks the voucher, takes a piece and writes the order, each by itself; two orders can pass the check with one piece left.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    order.job.enter_and_stay().await;
    mysql::execute(ctx, &order.job, sqlx::query(DEDUCT).bind(order.voucher_id)).await?;
    let order_id = id_worker::next_id(ctx, id_worker::ORDERS).await;
    let order_id = order_id.map_err(Error::after_piece_was_taken)?;
    let written = mysql::execute(ctx, &order.job, rows::insert_statement(order, order_id)).await;
    written.map_err(Error::after_piece_was_taken)?;
    Ok(OrderReceipt { order_id, lock: None })
}
