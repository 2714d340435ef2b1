//! The statements that the steps are made of, and the two halves of most: the look at the voucher, and the transaction.
//!
//! 1. [`check_on_sale`]: read the voucher; has the seckill begun, is it over, is there a piece left?
//! 2. [`create_order`]: in a transaction: has the user an order? Deduct a piece if there is one, write the order, commit.
//!
//! `create_order` is only as safe as what surrounds it: a plain read sees no order that another has not committed yet.
//!
//! Next: `check_then_deduct.rs`, the first step.

use super::{Order, OrderReceipt, SeckillError, id_worker, voucher};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{
        Point,
        mysql::{self, Write},
    },
};
use chrono::Utc;
use oversell_lock::mysql::Conn;

/// The orders of this user for this voucher, 0 or more.
const COUNT_ORDERS: &str = "SELECT COUNT(*) FROM tb_voucher_order WHERE user_id = ? AND voucher_id = ?";

/// Fails unless the voucher is on sale now and has a piece left, as far as a plain read can tell: steps 1 to 4 of the text.
pub(super) async fn check_on_sale(ctx: &Ctx, order: &Order) -> Result<(), Error> {
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    let voucher = mysql::within_limit(&order.job, voucher::read_on(&mut conn, order.voucher_id)).await?;
    conn.done();
    let voucher = voucher.ok_or(SeckillError::NoVoucher(order.voucher_id))?;
    let now = Utc::now();
    if voucher.begin > now {
        return Err(SeckillError::NotStarted.into());
    }
    if voucher.end < now {
        return Err(SeckillError::Over.into());
    }
    if voucher.stock < 1 {
        return Err(Error::SoldOut);
    }
    order.job.reach(Point::Read).await;
    Ok(())
}

/// Checks that the user has no order, takes a piece, writes the order and commits: `createVoucherOrder` of the text.
pub(super) async fn create_order(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    let created = async {
        mysql::begin(&mut conn, &order.job).await?;
        check_not_ordered_yet(&mut conn, order).await?;
        order.job.enter_and_stay().await;
        let ordered = deduct_and_insert(ctx, &mut conn, order).await?;
        order.job.reach(Point::Commit).await;
        mysql::commit(&mut conn, &order.job).await?;
        order.job.reach(Point::Committed).await;
        Ok(ordered)
    };
    let created = created.await;
    mysql::end_transaction(conn, created).await
}

/// Fails if the user has an order already, as far as a plain read can tell.
pub(super) async fn check_not_ordered_yet(conn: &mut Conn, order: &Order) -> Result<(), Error> {
    let count = sqlx::query_scalar(COUNT_ORDERS).bind(order.user_id).bind(order.voucher_id);
    let count: i64 = mysql::within_limit(&order.job, count.fetch_one(&mut **conn)).await?;
    if count > 0 {
        return Err(SeckillError::AlreadyOrdered.into());
    }
    order.job.reach(Point::Checked).await;
    Ok(())
}

/// Takes a piece and writes the order in the open transaction of this connection. Does not commit.
pub(super) async fn deduct_and_insert(ctx: &Ctx, conn: &mut Conn, order: &Order) -> Result<OrderReceipt, Error> {
    if mysql::execute_on(conn, &order.job, deduct_statement(order)).await? == 0 {
        return Err(Error::SoldOut);
    }
    let order_id = id_worker::next_id(ctx, id_worker::ORDERS).await?;
    mysql::execute_on(conn, &order.job, insert_statement(order, order_id)).await?;
    Ok(OrderReceipt { order_id, lock: None })
}

/// The statement that takes one piece; it changes no row if none is left.
pub(super) fn deduct_statement(order: &Order) -> Write<'static> {
    sqlx::query("UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = ? AND stock > 0").bind(order.voucher_id)
}

pub(super) fn insert_statement(order: &Order, order_id: i64) -> Write<'static> {
    let insert = sqlx::query("INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (?, ?, ?)");
    insert.bind(order_id).bind(order.user_id).bind(order.voucher_id)
}
