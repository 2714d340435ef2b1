//! §4.3: a row with a unique key as a lock: what it lacks, and a holder that acquires it again.

use crate::trials::{Cluster, NoVerdict, Observation};
use oversell::claims::{Words, words};
use oversell_lab::{fault::Action, spread::Spread};
use sqlx::{Connection, Executor};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

experiments! {
    "4.3.4" => locking_costs_two_statements(&["table-lock", "mysql-named-lock"]), twin(&["redis-lock"]);
    "4.3.3" => plain_row_is_not_reentrant("re-entry"), twin("another");
    "003.table-lock" => row_of_dead_holder_blocks_others("table-lock", "lock", "null"), twin("table-lock-lease", "lock:table-lock-lease", "now(3) + interval 1 second");
}

/// Claim: with each answer of the database delayed by 200 ms, a purchase under each of these locks takes longer than one without a
/// lock, by the two commands that take and release the lock.
async fn locking_costs_two_statements(
    on: &Cluster,
    locks: &[&str],
) -> Result<Observation, NoVerdict> {
    /// How much later the database's answers reach the slowed instance.
    const ANSWER_DELAY: Duration = Duration::from_millis(200);
    let product = on.create_product(5000).await?;
    let Some(instance) = on.servers()?.instances.last() else {
        return Err(NoVerdict::unavailable("没有实例", "there is no instance"));
    };
    let way = format!("{}-mysql", instance.name);
    let strategies: Vec<_> = ["none"].into_iter().chain(locks.iter().copied()).collect();
    let measure = async || {
        let mut took = Vec::new();
        for strategy in &strategies {
            let mut each = Vec::new();
            for _ in 0..5 {
                let begun = Instant::now();
                product.buy(&instance.url, strategy, "").await?;
                each.push(begun.elapsed().as_secs_f64());
            }
            // The shortest, because a busy machine only adds.
            took.push(Spread::from_values(each).min);
        }
        Ok::<_, NoVerdict>(took)
    };
    let fast = measure().await?;
    on.faults()?
        .inject_sized(Action::Slow, &way, ANSWER_DELAY)
        .await?;
    let slow = measure().await?;
    on.inject_fault(Action::Mend, &way).await?;
    product.remove().await?;
    let more: Vec<_> = slow
        .iter()
        .zip(&fast)
        .map(|(slow, fast)| slow - fast)
        .collect();
    let each: Vec<_> = strategies
        .iter()
        .zip(&more)
        .map(|(strategy, more)| words!("{strategy} 多用 {more:.1} s", "{strategy} {more:.1} s"))
        .collect();
    let Words { zh, en } = Words::join(&each, ["，", ", "]);
    let words = words!(
        "数据库的每个答复晚 0.2 s，一次购买：{zh}。",
        "Each answer of the database comes 0.2 s later; a purchase takes so much longer: {en}."
    );
    let bound = more[1..]
        .iter()
        .all(|with_lock| *with_lock > more[0] + 1.5 * ANSWER_DELAY.as_secs_f64());
    Ok(Observation::holds(bound, words).value("more_s", more))
}

/// Claim: a second insert by the same connection is refused, and a strategy with a count of holds can take its lock twice.
async fn plain_row_is_not_reentrant(on: &Cluster, again: &str) -> Result<Observation, NoVerdict> {
    let (product, mut conn) = (on.create_product(5000).await?, on.mysql().await?);
    let [name, again] = ["re-entry", again].map(|name| format!("{name}:{}", product.id));
    let insert = |name: &str| format!("INSERT INTO tb_lock (lock_name) VALUES ('{name}')");
    conn.execute(insert(&name).as_str()).await?;
    let refused = is_duplicate(&conn.execute(insert(&again).as_str()).await);
    let delete = format!("DELETE FROM tb_lock WHERE lock_name IN ('{name}', '{again}')");
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
    let buying = product.buy(on.one_instance(), "table-lock-lease", "&hold_ms=1500");
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
    Ok(Observation::holds(refused && holds == 2 && status == 200, words).value("holds", holds))
}

/// Claim: the row of a dead holder stays and blocks others until it is deleted; others fail at once instead of waiting, and nobody
/// buys while the database is down.
async fn row_of_dead_holder_blocks_others(
    on: &Cluster,
    strategy: &str,
    name: &str,
    expires: &str,
) -> Result<Observation, NoVerdict> {
    let (product, mut dead) = (on.create_product(5000).await?, on.mysql().await?);
    let insert = format!(
        "INSERT INTO tb_lock (lock_name, expires_at) VALUES ('{name}:{}', {expires})",
        product.id
    );
    dead.execute(insert.as_str()).await?;
    let not_reentrant = is_duplicate(&dead.execute(insert.as_str()).await);
    dead.close().await?;

    let (mut another, begun) = (on.mysql().await?, Instant::now());
    let refused = is_duplicate(&another.execute(insert.as_str()).await);
    let took = begun.elapsed();
    // The holder is dead: an insert that waited for it would wait for ever.
    let at_once = refused && took < Duration::from_secs(1);
    let (no_expiry, _) = product
        .buy(on.one_instance(), strategy, "&wait_ms=3000")
        .await?;
    let delete = format!(
        "DELETE FROM tb_lock WHERE lock_name = '{name}:{}'",
        product.id
    );
    another.execute(delete.as_str()).await?;
    let (free, _) = product.buy(on.one_instance(), strategy, "").await?;
    another.close().await?;

    on.inject_fault(Action::Kill, "mysql").await?;
    let (down, _) = product
        .buy(on.one_instance(), strategy, "&wait_ms=1000")
        .await?;
    on.inject_fault(Action::Start, "mysql").await?;
    product.remove().await?;
    let ms = took.as_millis();
    let words = words!(
        "持有者死了，等 3 s：{no_expiry}，删掉那一行才 {free}；数据库停了：{down}；别人的插入 {ms} ms 就报主键重复：{refused}；自己再插一次也报：{not_reentrant}。",
        "Its holder is dead, 3 s later: {no_expiry}, and {free} once the row is deleted; with the database down: {down}; another's insert fails after {ms} ms as a duplicate: {refused}; its own second one too: {not_reentrant}."
    );
    let statuses = [no_expiry, free, down];
    let holds = statuses == [503, 200, 503] && at_once && not_reentrant;
    Ok(Observation::holds(holds, words).value("statuses", statuses.to_vec()))
}

/// Whether a unique key has refused the row.
fn is_duplicate<T>(done: &Result<T, sqlx::Error>) -> bool {
    let error = done.as_ref().err().and_then(sqlx::Error::as_database_error);
    error.is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}
