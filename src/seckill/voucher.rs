//! A voucher of a seckill: how many pieces there are, and from when to when they are sold.

use super::SeckillError;
use super::{
    check::{VoucherOrder, VoucherRecords},
    stream,
};
use crate::{ctx::Ctx, error::Error, section::session::Session, server::Server};
use chrono::{DateTime, Utc};
use oversell_lock::mysql::{Conn, is_cut_off};
use serde::Serialize;
use sqlx::{Executor, MySqlConnection};
use std::time::Duration;
use utoipa::ToSchema;

/// Time limit of each statement: a person waits for the answer.
const MYSQL_TIMEOUT: Duration = Duration::from_secs(3);

/// Time limit of reading all orders of a voucher, which may be many.
const ALL_ORDERS_TIMEOUT: Duration = Duration::from_secs(30);

const READ_VOUCHER: &str =
    "SELECT voucher_id, title, pieces, stock, begin_time, end_time FROM tb_seckill_voucher WHERE voucher_id = ?";
const INSERT_VOUCHER: &str = "INSERT INTO tb_seckill_voucher (title, pieces, stock, begin_time, end_time) VALUES (?, ?, ?, ?, ?)";
/// Deletes a voucher, then its orders.
const DELETE_VOUCHER: [&str; 2] =
    ["DELETE FROM tb_seckill_voucher WHERE voucher_id = ?", "DELETE FROM tb_voucher_order WHERE voucher_id = ?"];
/// Whether the voucher was put into Redis.
const READ_IN_REDIS: &str = "SELECT in_redis FROM tb_seckill_voucher WHERE voucher_id = ?";
/// Number and user of each order of a voucher.
const READ_ORDERS: &str = "SELECT id, user_id FROM tb_voucher_order WHERE voucher_id = ? ORDER BY id";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Voucher {
    #[schema(example = 1)]
    pub id: i64,
    #[schema(example = "100元代金券")]
    pub title: String,
    /// The initial stock.
    #[schema(example = 100)]
    pub pieces: i64,
    /// Pieces left; below 0 once it is oversold.
    #[schema(example = 100)]
    pub stock: i64,
    /// From when on it is sold.
    pub begin: DateTime<Utc>,
    /// Until when it is sold.
    pub end: DateTime<Utc>,
}

/// The key of a voucher in Redis, for the step that sells there: a hash of `stock`, `begin` and `end`.
pub(super) fn stock_key(ctx: &Ctx, id: i64) -> String {
    ctx.redis_key(&format!("seckill:stock:{id}"))
}

/// The key of the set of users who have ordered this voucher.
pub(super) fn users_key(ctx: &Ctx, id: i64) -> String {
    ctx.redis_key(&format!("seckill:order:{id}"))
}

/// Reads a voucher from MySQL.
/// Errors: [`SeckillError::NoVoucher`]; [`Error::Unavailable`] if MySQL is down.
pub async fn read(ctx: &Ctx, id: i64) -> Result<Voucher, Error> {
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    let voucher = Session::of(&conn).bounded(MYSQL_TIMEOUT, read_on(&mut conn, id)).await?;
    conn.done();
    voucher.ok_or_else(|| SeckillError::NoVoucher(id).into())
}

/// Reads a voucher on this connection, without a time limit; `None` if there is none. A plain read locks nothing.
pub(super) async fn read_on(conn: &mut MySqlConnection, id: i64) -> Result<Option<Voucher>, sqlx::Error> {
    let row: Option<(_, _, _, _, _, _)> = sqlx::query_as(READ_VOUCHER).bind(id).fetch_optional(conn).await?;
    Ok(row.map(|(id, title, pieces, stock, begin, end)| Voucher { id, title, pieces, stock, begin, end }))
}

/// Adds a voucher of `pieces` pieces and returns its number.
/// Errors: [`Error::Unavailable`] if MySQL is down, [`Error::Unknown`] if it did not answer.
pub async fn add(ctx: &Ctx, title: &str, pieces: i64, begin: DateTime<Utc>, end: DateTime<Utc>) -> Result<i64, Error> {
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    // A `DateTime<Utc>` would be sent as a TIMESTAMP, which ends in 2038.
    let (begin, end) = (begin.naive_utc(), end.naive_utc());
    let add = sqlx::query(INSERT_VOUCHER).bind(title).bind(pieces).bind(pieces).bind(begin).bind(end);
    let added = Session::of(&conn).bounded(MYSQL_TIMEOUT, add.execute(&mut *conn)).await.map_err(classify_failed_write)?;
    conn.done();
    Ok(added.last_insert_id().cast_signed())
}

/// Deletes a voucher's keys from Redis (if that fails, it is only logged), then the voucher and its orders from MySQL, each
/// by itself. Queued orders stay in the stream.
/// Errors: [`SeckillError::NoVoucher`]; otherwise as [`add`].
pub async fn remove(ctx: &Ctx, id: i64) -> Result<(), Error> {
    let mut forget = redis::pipe();
    forget.del(stock_key(ctx, id)).del(users_key(ctx, id));
    if let Err(error) = forget.exec_async(&mut ctx.redis.connection()).await {
        tracing::warn!(%error, id, "redis did not answer; the voucher is removed from mysql only");
    }
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    let mut removed = 0;
    for statement in DELETE_VOUCHER {
        let done = Session::of(&conn).bounded(MYSQL_TIMEOUT, sqlx::query(statement).bind(id).execute(&mut *conn)).await;
        removed += done.map_err(classify_failed_write)?.rows_affected();
    }
    conn.done();
    if removed == 0 { Err(SeckillError::NoVoucher(id).into()) } else { Ok(()) }
}

/// Reads the stock and orders of a voucher in one snapshot of MySQL, for [`check`](super::check). With the stock in Redis,
/// unless that cannot be read, orders are queued, or the stock in MySQL has changed meanwhile.
pub async fn read_records(ctx: &Ctx, id: i64) -> Result<VoucherRecords, Error> {
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    let records = Session::of(&conn).bounded(ALL_ORDERS_TIMEOUT, read_records_on(&mut conn, id)).await?;
    let (mut records, is_in_redis) = records.ok_or(SeckillError::NoVoucher(id))?;
    if is_in_redis {
        let in_redis = settled_stock_in_redis(ctx, id).await;
        // Redis is read between two reads of the database: only if these agree do all three belong to one moment.
        let voucher = Session::of(&conn).bounded(MYSQL_TIMEOUT, read_on(&mut conn, id)).await?;
        let is_unchanged = voucher.is_some_and(|voucher| voucher.stock == records.stock);
        records.redis_stock = in_redis.filter(|_| is_unchanged);
    }
    conn.done();
    Ok(records)
}

/// The stock in Redis; `None` if Redis has none or does not answer, or orders of any voucher are still queued.
async fn settled_stock_in_redis(ctx: &Ctx, id: i64) -> Option<i64> {
    let mut ask = redis::pipe();
    ask.atomic().hget(stock_key(ctx, id), "stock").xlen(ctx.redis_key(stream::ORDERS_STREAM));
    let said = ask.query_async(&mut ctx.redis.connection()).await;
    let (stock, unsettled): (Option<i64>, u64) =
        said.inspect_err(|error| tracing::debug!(%error, id, "the stock of a voucher in redis cannot be read")).ok()?;
    stock.filter(|_| unsettled == 0)
}

/// The stock and orders that MySQL has in one snapshot, and whether the voucher was put into Redis; `None` without a voucher.
async fn read_records_on(conn: &mut Conn, id: i64) -> Result<Option<(VoucherRecords, bool)>, sqlx::Error> {
    conn.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").await?;
    let voucher = read_on(conn, id).await?;
    let in_redis: Option<bool> = sqlx::query_scalar(READ_IN_REDIS).bind(id).fetch_optional(&mut **conn).await?;
    let orders: Vec<(i64, i64)> = sqlx::query_as(READ_ORDERS).bind(id).fetch_all(&mut **conn).await?;
    let orders = orders.into_iter().map(|(order_id, user_id)| VoucherOrder { order_id, user_id }).collect();
    conn.execute("COMMIT").await?;
    let records =
        voucher.map(|voucher| VoucherRecords { pieces: voucher.pieces, stock: voucher.stock, redis_stock: None, orders });
    Ok(records.zip(in_redis))
}

/// Classifies a failed write: refused by the server, or without an answer and perhaps done.
fn classify_failed_write(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::Database(_) if !is_cut_off(&error) => error.into(),
        _ => Error::unknown_outcome(Server::MySql, error),
    }
}
