#![doc = include_str!("unique_key.md")]

use crate::seckill::*;
use oversell_lock::mysql::Conn;

pub(super) const STEP: StepSpec = StepSpec {
    course: "一人一单",
    rank: Rank::Beyond("redis-rlock"),
    promise: Promise::Safe,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Writes the order with the user in `claimed_by`, on which the unique key is.
const INSERT: &str = "INSERT INTO tb_voucher_order (id, user_id, voucher_id, claimed_by) VALUES (?, ?, ?, ?)";

/// Checks the voucher, then places the order in one transaction.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    let placed = place_in_transaction(ctx, &mut conn, order).await;
    mysql::end_transaction(conn, placed).await
}

/// Checks, takes a piece, writes the order and commits. The unique key refuses a second order of the user.
async fn place_in_transaction(ctx: &Ctx, conn: &mut Conn, order: &Order) -> Result<OrderReceipt, Error> {
    mysql::begin(conn, &order.job).await?;
    rows::check_not_ordered_yet(conn, order).await?;
    order.job.enter_and_stay().await;
    if mysql::execute_on(conn, &order.job, rows::deduct_statement(order)).await? == 0 {
        return Err(Error::SoldOut);
    }
    let order_id = id_worker::next_id(ctx, id_worker::ORDERS).await?;
    let insert = sqlx::query(INSERT).bind(order_id).bind(order.user_id).bind(order.voucher_id).bind(order.user_id);
    if !mysql::execute_or_duplicate(conn, &order.job, insert).await? {
        return Err(SeckillError::AlreadyOrdered.into());
    }
    order.job.reach(Point::Commit).await;
    mysql::commit(conn, &order.job).await?;
    order.job.reach(Point::Committed).await;
    Ok(OrderReceipt { order_id, lock: None })
}
