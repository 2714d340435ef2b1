//! The orders of the stream, written into MySQL: many in one transaction, and each at most once.
//!
//! 1. Insert the orders. `claimed_by` is the user: the database keeps the rule of one order per user, too.
//! 2. Take their pieces from the stock of each voucher, if there are enough.
//! 3. Commit.
//!
//! What it survives: the same orders once more, or at the same time from another consumer: the primary key refuses them before
//! any piece is taken, so nothing is doubled. A commit without an answer is tried again, and refused in the same way. **What
//! breaks it**: nothing in the database; an order that it refuses for another reason is the [consumer's](super::consumer)
//! to judge.
//!
//! Next: back to `consumer.rs`.

use super::stream::QueuedOrder;
use crate::{ctx::Ctx, error::Error, section::session::Session, server::Server};
use oversell_lock::mysql::Conn;
use sqlx::{Executor, MySql, QueryBuilder};
use std::{collections::BTreeMap, time::Duration};

/// Time limit of each statement; a slower server counts as down.
const MYSQL_TIMEOUT: Duration = Duration::from_secs(3);

const INSERT_ORDERS: &str = "INSERT INTO tb_voucher_order (id, user_id, voucher_id, claimed_by) ";
/// Takes this many pieces if there are as many, else changes no row.
const DEDUCT_STOCK: &str = "UPDATE tb_seckill_voucher SET stock = stock - ? WHERE voucher_id = ? AND stock >= ?";
/// Finds an order by its number, user and voucher.
const FIND_ORDER: &str = "SELECT id FROM tb_voucher_order WHERE id = ? AND user_id = ? AND voucher_id = ?";

/// Why no order of the batch was written; after `Down` they may have been.
#[derive(Debug)]
pub(super) enum WriteFailure {
    /// One is there already, or another of the same user and voucher.
    Duplicate,
    /// A voucher has too few pieces, or does not exist.
    SoldOut,
    /// The database does not take one of them.
    Refused(String),
    /// The database is down, did not answer, or could not write now, as after a deadlock: whatever the orders.
    Down(Error),
}

/// Writes these orders and takes their pieces from the stock, all or none; which is unknown after [`WriteFailure::Down`].
pub(super) async fn write(ctx: &Ctx, orders: &[QueuedOrder]) -> Result<(), WriteFailure> {
    let mut conn = ctx.mysql(MYSQL_TIMEOUT).await.map_err(WriteFailure::Down)?;
    let written = insert_and_deduct_in_transaction(&mut conn, orders).await;
    match written {
        Ok(()) => conn.done(),
        // A connection without an answer is closed; after a refusal it is rolled back and reused.
        Err(WriteFailure::Down(_)) => {}
        Err(_) => {
            let session = Session::of(&conn);
            session.bounded(MYSQL_TIMEOUT, conn.execute("ROLLBACK")).await?;
            conn.done();
        }
    }
    written
}

/// Inserts the orders, takes their pieces and commits. After an error the transaction may still be open.
async fn insert_and_deduct_in_transaction(conn: &mut Conn, orders: &[QueuedOrder]) -> Result<(), WriteFailure> {
    let mut insert = QueryBuilder::<MySql>::new(INSERT_ORDERS);
    insert.push_values(orders, |mut row, order| {
        row.push_bind(order.order_id).push_bind(order.user_id).push_bind(order.voucher_id).push_bind(order.user_id);
    });
    // In one order of vouchers for all, so that two consumers do not wait for each other.
    let mut pieces = BTreeMap::<_, i64>::new();
    for order in orders {
        *pieces.entry(order.voucher_id).or_default() += 1;
    }
    let session = Session::of(conn);
    let begin = conn.execute("START TRANSACTION");
    session.bounded(MYSQL_TIMEOUT, begin).await?;
    session.bounded(MYSQL_TIMEOUT, insert.build().persistent(false).execute(&mut **conn)).await?;
    for (voucher, count) in pieces {
        let deduct = sqlx::query(DEDUCT_STOCK).bind(count).bind(voucher).bind(count);
        if session.bounded(MYSQL_TIMEOUT, deduct.execute(&mut **conn)).await?.rows_affected() == 0 {
            return Err(WriteFailure::SoldOut);
        }
    }
    session.bounded(MYSQL_TIMEOUT, conn.execute("COMMIT")).await?;
    Ok(())
}

/// Whether MySQL has this order, with this number, user and voucher.
pub(super) async fn is_stored(ctx: &Ctx, order: &QueuedOrder) -> Result<bool, Error> {
    let mut conn = ctx.mysql(MYSQL_TIMEOUT).await?;
    let find = sqlx::query_scalar::<_, i64>(FIND_ORDER).bind(order.order_id).bind(order.user_id).bind(order.voucher_id);
    let found = Session::of(&conn).bounded(MYSQL_TIMEOUT, find.fetch_optional(&mut *conn)).await?;
    conn.done();
    Ok(found.is_some())
}

impl From<sqlx::Error> for WriteFailure {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Database(refusal) = &error {
            // By the class of SQLSTATE: 22 and 23 are of the data, 45 of a trigger's SIGNAL. All else is the server's.
            match refusal.code() {
                _ if refusal.is_unique_violation() => return Self::Duplicate,
                Some(code) if ["22", "23", "45"].iter().any(|class| code.starts_with(class)) => {
                    return Self::Refused(refusal.to_string());
                }
                _ => {}
            }
        }
        Self::Down(Error::unavailable(Server::MySql, error))
    }
}
