//! Whether a product exists.

use crate::{ctx::Ctx, error::Error, server::Server};
use parking_lot::Mutex;
use std::{collections::HashSet, time::Duration};
use tokio::time::timeout;

/// Time limit of the query to MySQL; a slower server counts as down.
const PRODUCT_TIMEOUT: Duration = Duration::from_secs(3);

/// How many products an instance remembers to have been there.
const MAX_KNOWN: usize = 10_000;

/// Products that were there when this instance looked.
#[derive(Debug, Default)]
struct KnownProducts(Mutex<HashSet<i64>>);

/// As [`check_product`], but a product that was there once passes without a question: for the directory of a lock in ZooKeeper, which
/// stays when the lock is released. So those who make products up leave none, and a load asks once.
pub async fn check_product_was_there(ctx: &Ctx, stock_id: i64) -> Result<(), Error> {
    let known = ctx.local.of::<KnownProducts>();
    if known.0.lock().contains(&stock_id) {
        return Ok(());
    }
    check_product(ctx, stock_id).await?;
    let mut known = known.0.lock();
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(stock_id);
    Ok(())
}

/// Checks that a product exists before something is made for it in a server. The course's own always does.
/// Errors: [`Error::NoProduct`], [`Error::Unavailable`] if MySQL is down, [`Error::Timeout`] if its connections stay in use.
pub async fn check_product(ctx: &Ctx, stock_id: i64) -> Result<(), Error> {
    if stock_id == 1 {
        return Ok(());
    }
    let mut conn = ctx.admin_conn(PRODUCT_TIMEOUT).await?;
    let row = sqlx::query("SELECT 1 FROM db_stock WHERE id = ?").bind(stock_id);
    let read = timeout(PRODUCT_TIMEOUT, row.fetch_optional(&mut *conn)).await;
    let row = read.map_err(|_| Error::unavailable(Server::MySql, "no answer in time"))??;
    conn.done();
    match row {
        Some(_) => Ok(()),
        None => Err(Error::NoProduct(stock_id)),
    }
}
