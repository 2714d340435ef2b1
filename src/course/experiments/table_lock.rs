//! §4.3.3: a row under a unique key as a lock, and a holder that needs it again.

use crate::course::{Cluster, NoVerdict, Seen, Words};
use sqlx::{Connection, Executor};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The same connection inserts the course's row twice; and the strategy that takes its lock twice, seen in the table.
pub(super) async fn not_reentrant(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let (product, mut conn) = (on.product(5000).await?, on.mysql().await?);
    let [name, other] = ["re-entry", "another"].map(|name| format!("{name}:{}", product.id));
    let insert = |name: &str| format!("INSERT INTO tb_lock (lock_name) VALUES ('{name}')");
    conn.execute(insert(&name).as_str()).await?;
    let again = insert(if twin { &other } else { &name });
    let again = conn.execute(again.as_str()).await;
    let refused = again
        .as_ref()
        .err()
        .and_then(sqlx::Error::as_database_error)
        .is_some_and(|e| e.is_unique_violation());
    let delete = format!("DELETE FROM tb_lock WHERE lock_name IN ('{name}', '{other}')");
    conn.execute(delete.as_str()).await?;

    let holds = async {
        let holds = format!(
            "SELECT CAST(holds AS SIGNED) FROM tb_lock WHERE lock_name = 'lock:table-lock-lease:{}'",
            product.id
        );
        loop {
            let seen: Option<i64> = sqlx::query_scalar(&holds).fetch_optional(&mut conn).await?;
            if seen == Some(2) {
                return Ok::<_, NoVerdict>(2);
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let buying = product.buy(on.one(), "table-lock-lease", "&hold_ms=1500");
    let holds = async {
        timeout(Duration::from_secs(5), holds)
            .await
            .unwrap_or(Ok(1))
    };
    let (bought, holds) = tokio::join!(buying, holds);
    let ((status, _), holds) = (bought?, holds?);
    conn.close().await?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "同一个连接第二次插入：{}；table-lock-lease 的行里 holds = {holds}，照样卖了。",
            if refused {
                "被唯一键拒绝"
            } else {
                "插进去了"
            }
        ),
        format!(
            "The same connection's second insert was {}; in the row of table-lock-lease holds = {holds}, and it sold.",
            if refused {
                "refused by the key"
            } else {
                "done"
            }
        ),
    );
    Ok(Seen::holds(refused && holds == 2 && status == 200, words).value("holds", holds))
}
