//! A voucher's stock in Redis: how it gets there, and that it gets there once.
//!
//! 1. In a transaction, mark the voucher in MySQL as put into Redis. A second instance waits for the row.
//! 2. The instance that marked it reads it and writes `seckill:stock:{id}`: stock, begin and end.
//! 3. Commit.
//!
//! What it survives: any number of instances at once, and one that dies in between: the mark is rolled back, and the next
//! writes only what is not there. A marked voucher that Redis does not have was lost: it is not written again, since it is
//! not known which orders were lost with it. **What breaks it**: an instance that dies before its commit, and a Redis that
//! then loses the voucher, sold from meanwhile: it is put there once more, and MySQL refuses the pieces that are too many.
//!
//! Next: `stream.rs`.

use super::{Order, SeckillError, voucher};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{mysql, redis_key},
};
use oversell_lock::mysql::Conn;

/// Marks the voucher as put into Redis; changes no row if it was marked before.
const MARK_IN_REDIS: &str = "UPDATE tb_seckill_voucher SET in_redis = TRUE WHERE voucher_id = ? AND NOT in_redis";

/// Puts the voucher into Redis, unless that was done before; one that Redis has lost since is not put there again.
/// [`SeckillError::NoVoucher`] if MySQL has none.
pub(super) async fn publish(ctx: &Ctx, order: &Order) -> Result<(), Error> {
    let mut conn = ctx.mysql(order.job.wait_left()).await?;
    if mysql::within_limit(&order.job, voucher::read_on(&mut conn, order.voucher_id)).await?.is_none() {
        conn.done();
        return Err(SeckillError::NoVoucher(order.voucher_id).into());
    }
    let published = publish_in_transaction(ctx, &mut conn, order).await;
    mysql::end_transaction(conn, published).await
}

/// Marks the voucher in MySQL, writes it to Redis if this call has marked it, and commits.
async fn publish_in_transaction(ctx: &Ctx, conn: &mut Conn, order: &Order) -> Result<(), Error> {
    mysql::begin(conn, &order.job).await?;
    let marked = mysql::execute_on(conn, &order.job, sqlx::query(MARK_IN_REDIS).bind(order.voucher_id)).await? == 1;
    if let Some(voucher) = mysql::within_limit(&order.job, voucher::read_on(conn, order.voucher_id)).await?.filter(|_| marked) {
        let key = voucher::stock_key(ctx, order.voucher_id);
        let mut set = redis::pipe();
        set.atomic().hset_nx(&key, "begin", voucher.begin.timestamp_millis());
        set.hset_nx(&key, "end", voucher.end.timestamp_millis()).hset_nx(&key, "stock", voucher.stock);
        let mut redis = ctx.redis.connection();
        let set = set.exec_async(&mut redis).await;
        redis_key::classify_write(set, redis.has_sent())?;
    }
    mysql::commit(conn, &order.job).await
}
