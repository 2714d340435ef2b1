//! Whether a product exists.

use crate::{ctx::Ctx, error::Error, server::Server};
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of the query to MySQL; a slower server counts as down.
const PRODUCT_TIMEOUT: Duration = Duration::from_secs(3);

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
