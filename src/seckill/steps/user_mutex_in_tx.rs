#![doc = include_str!("user_mutex_in_tx.md")]

use super::user_mutex;
use crate::seckill::*;
use oversell_lock::mysql::Conn;

pub(super) const STEP: StepSpec = StepSpec {
    course: "一人一单",
    rank: Rank::After("user-mutex"),
    promise: Promise::Unsafe,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Checks the voucher, then places the order in a transaction that outlives the user's mutex.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    rows::check_on_sale(ctx, order).await?;
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    let placed = place_in_transaction(ctx, &mut conn, order).await;
    mysql::end_transaction(conn, placed).await
}

/// Begins, places the order under the user's mutex, unlocks, and commits only then.
async fn place_in_transaction(ctx: &Ctx, conn: &mut Conn, order: &Order) -> Result<OrderReceipt, Error> {
    mysql::begin(conn, &order.job).await?;
    let held = user_mutex::lock(ctx, order).await?;
    rows::check_not_ordered_yet(conn, order).await?;
    let ordered = rows::deduct_and_insert(ctx, conn, order).await?;
    drop(held);
    // The requested stay is here, so that this step breaks each time.
    order.job.enter_and_stay().await;
    order.job.reach(Point::Commit).await;
    mysql::commit(conn, &order.job).await?;
    Ok(ordered)
}
