//! [002] 事务: the lock inside the transaction: unlocked before the commit, it fails on one instance already.
//!
//! 1. Read the voucher: has the seckill begun, is it over, is `stock` 1 at least?
//! 2. Begin a transaction (`@Transactional`).
//! 3. Lock the user's mutex; has the user an order? Deduct, write the order; unlock.
//! 4. Commit.
//!
//! What it survives: users who order once. **What breaks it**: the user's next order between unlock and commit. It has the
//! lock, and does not see the order, which is not committed yet.
//!
//! Next: `user_mutex.rs` has the cure: the lock round the transaction (在调用处上锁). In Spring the call must then go through
//! the proxy (`AopContext.currentProxy()`), or `this.` begins no transaction at all; here a transaction is a plain call.

use super::user_mutex;
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, rows},
    section::{Point, mysql},
    stock::Promise,
};
use oversell_lock::mysql::Conn;

pub(super) const STEP: Step = Step {
    slug: "user-mutex-in-tx",
    course: "一人一单",
    rank: Rank::After("user-mutex"),
    promise: Promise::Unsafe,
    title: Bilingual {
        zh: "锁在事务里面：先解锁后提交",
        en: "The lock inside the transaction: unlock, then commit",
    },
    breaks: Bilingual {
        zh: "解锁与提交之间",
        en: "between the unlock and the commit",
    },
    source: include_str!("user_mutex_in_tx.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    rows::open(ctx, order).await?;
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    let placed = in_transaction(ctx, &mut conn, order).await;
    mysql::rolled_back(conn, placed).await
}

async fn in_transaction(ctx: &Ctx, conn: &mut Conn, order: &Order) -> Result<Ordered, Error> {
    mysql::begin(conn).await?;
    let held = user_mutex::lock(ctx, order).await?;
    rows::unordered(conn, order).await?;
    let ordered = rows::write(ctx, conn, order).await?;
    drop(held);
    // The stay that a request asks for is here, where this step breaks, so that it breaks each time.
    order.job.inside().await;
    order.job.at(Point::Commit).await;
    mysql::commit(conn, &order.job).await?;
    Ok(ordered)
}
