//! §4: a row under a unique key as a lock, its flaws, and their cures.

use crate::{
    course::{Cluster, NoVerdict, Seen, Words},
    orders::Action,
};
use sqlx::{Connection, Executor};
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub(super) async fn single_point(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (before, _) = product.buy(on.one(), "table-lock", "").await?;
    on.fault(Action::Kill, "mysql").await?;
    let (down, _) = product.buy(on.one(), "table-lock", "&wait_ms=1000").await?;
    on.fault(Action::Start, "mysql").await?;
    let back = async {
        while product
            .buy(on.one(), "table-lock", "&wait_ms=1000")
            .await?
            .0
            != 200
        {
            sleep(Duration::from_millis(200)).await;
        }
        Ok::<_, NoVerdict>(())
    };
    timeout(Duration::from_secs(60), back)
        .await
        .map_err(|_| NoVerdict::failed("MySQL does not come back"))??;
    product.remove().await?;
    let words = Words::new(
        format!("数据库在：{before}；挂了：{down}；起来以后又是 200。"),
        format!("With the database: {before}; without: {down}; with it again: 200."),
    );
    Ok(Seen::holds((before, down) == (200, 503), words).value("status", vec![before, down, 200]))
}

/// The same connection inserts the course's row twice; and the strategy that takes its lock twice, seen in the table.
pub(super) async fn not_reentrant(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (product, mut conn) = (on.product(5000).await?, on.mysql().await?);
    let name = format!("re-entry:{}", product.id);
    let insert = format!("INSERT INTO tb_lock (lock_name) VALUES ('{name}')");
    conn.execute(insert.as_str())
        .await
        .map_err(NoVerdict::failed)?;
    let again = conn.execute(insert.as_str()).await;
    let refused = again
        .as_ref()
        .err()
        .and_then(sqlx::Error::as_database_error)
        .is_some_and(|e| e.is_unique_violation());
    let delete = format!("DELETE FROM tb_lock WHERE lock_name = '{name}'");
    conn.execute(delete.as_str())
        .await
        .map_err(NoVerdict::failed)?;

    let holds = async {
        let holds = format!(
            "SELECT CAST(holds AS SIGNED) FROM tb_lock WHERE lock_name = 'lock:table-lock-lease:{}'",
            product.id
        );
        loop {
            let seen: Option<i64> = sqlx::query_scalar(&holds)
                .fetch_optional(&mut conn)
                .await
                .map_err(NoVerdict::failed)?;
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
    conn.close().await.map_err(NoVerdict::failed)?;
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
