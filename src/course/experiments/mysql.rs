//! §1.7.1: the condition of the text, and the last piece.

use crate::course::{Cluster, NoVerdict, Seen, words};
use sqlx::{Connection, Executor};

/// The text's statement, on a product with one piece.
pub(super) async fn last_piece(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let product = on.product(if twin { 0 } else { 1 }).await?;
    let mut conn = on.mysql().await?;
    let mut changed = Vec::new();
    for condition in ["(count - 1) > 0", "count > 0"] {
        let take = format!(
            "UPDATE db_stock SET count = count - 1 WHERE id = {} AND {condition}",
            product.id
        );
        changed.push(conn.execute(take.as_str()).await?.rows_affected());
    }
    conn.close().await?;
    product.remove().await?;
    let words = words!(
        "还剩 1 件：原文的条件改了 {} 行，卖不掉；写成 count > 0 改了 {} 行。",
        "One piece is left: with the text's condition {} rows change, and it cannot be sold; with count > 0, {}.",
        changed[0],
        changed[1]
    );
    Ok(Seen::holds(changed == [1, 1], words).value("rows", changed))
}
