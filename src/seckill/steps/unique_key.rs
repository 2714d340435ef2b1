//! Beyond [002]: a unique key on voucher and user, so that the database itself refuses a second order.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. In a transaction: has the user an order? It saves the work where the answer is yes; nothing rests on it.
//! 3. Deduct, write the order. Where the key refuses it, roll back, the deduction too: 用户已经购买过一次!
//! 4. Commit.
//!
//! What it survives: any number of users, orders and instances, without any lock of ours, and a lock that failed. (The steps
//! before this one leave the key's column empty, so that they can break.) **What breaks it**: nothing; but every order of a
//! voucher waits for its one row, and each that is refused late has deducted and been rolled back.
//!
//! Next: `script_stream.rs`, which takes the voucher's row out of the way.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, id_worker, rows},
    section::{Point, mysql},
    stock::Promise,
};
use oversell_lock::mysql::Conn;

pub(super) const STEP: Step = Step {
    slug: "unique-key",
    course: "一人一单",
    rank: Rank::Beyond("redis-rlock"),
    promise: Promise::Safe,
    title: Bilingual {
        zh: "唯一索引：数据库拒绝第二单",
        en: "A unique key: the database refuses the second order",
    },
    breaks: Bilingual {
        zh: "所有订单都等同一行",
        en: "every order waits for one row",
    },
    source: include_str!("unique_key.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

const INSERT: &str =
    "INSERT INTO tb_voucher_order (id, user_id, voucher_id, claimed_by) VALUES (?, ?, ?, ?)";

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    let placed = in_transaction(ctx, &mut conn, order).await;
    mysql::rolled_back(conn, placed).await
}

async fn in_transaction(ctx: &Ctx, conn: &mut Conn, order: &Order) -> Result<Ordered, Error> {
    mysql::begin(conn).await?;
    rows::unordered(conn, order).await?;
    order.job.inside().await;
    if mysql::execute_on(conn, &order.job, rows::deduct(order)).await? == 0 {
        return Err(Error::SoldOut);
    }
    let order_id = id_worker::next(ctx, "order").await?;
    let insert = sqlx::query(INSERT)
        .bind(order_id)
        .bind(order.user_id)
        .bind(order.voucher_id)
        .bind(order.user_id);
    if !mysql::execute_or_duplicate(conn, &order.job, insert).await? {
        return Err(Error::AlreadyOrdered);
    }
    order.job.at(Point::Commit).await;
    mysql::commit(conn, &order.job).await?;
    order.job.at(Point::Committed).await;
    Ok(Ordered {
        order_id,
        lock: None,
    })
}
