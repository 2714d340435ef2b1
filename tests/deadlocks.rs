//! The lessons on deadlocks, played on the real server: each shows its error, and with its cure none.

use crate::{replays::times, support::Servers};
use oversell::{
    classroom::deadlocks::{self, DEADLOCK, DeadlockLesson, DeadlockPlan, DeadlockReplay, Side},
    ctx::Ctx,
};
use secrecy::ExposeSecret;
use sqlx::{Connection, Executor, MySqlConnection};
use std::{sync::Arc, time::Duration};

type Outcome = Result<(), String>;

/// An instance's clients with a database of their own.
async fn alone(
    servers: &Servers,
    user: &str,
    database: &str,
) -> Result<(Arc<Ctx>, MySqlConnection), String> {
    let mut root = MySqlConnection::connect(&servers.mysql())
        .await
        .map_err(|e| e.to_string())?;
    root.execute(format!("CREATE DATABASE {database}").as_str())
        .await
        .map_err(|e| e.to_string())?;
    let url = servers.mysql().replace("root@", &format!("{user}@"));
    let url = url
        .rsplit_once('/')
        .map(|(server, _)| format!("{server}/{database}"))
        .ok_or("no database")?;
    Ok((servers.with(|config| config.mysql.url = url.into()), root))
}

async fn play(
    ctx: &Ctx,
    lesson: &'static DeadlockLesson,
    cured: bool,
    retry: bool,
) -> Result<DeadlockReplay, String> {
    let played = deadlocks::replay(ctx, lesson, cured, retry).await;
    played.map_err(|e| format!("{}, cured {cured}, retry {retry}: {e}", lesson.slug))
}

/// Without its cure it shows its error and one transaction goes through, with it both do; each time, not now and then.
pub(crate) async fn shows_its_error_and_its_cure(
    servers: &Servers,
    lesson: &'static DeadlockLesson,
) -> Outcome {
    let database = format!("alone_{}", lesson.slug.replace('-', "_"));
    let (ctx, mut root) = alone(servers, "root", &database).await?;
    let mut accounts = 0;
    for _ in 0..times() {
        let uncured = play(&ctx, lesson, false, false).await?;
        if uncured.error != Some(lesson.error)
            || uncured.victim.is_none()
            || uncured.committed.len() != 1
        {
            return Err(format!("without the cure: {uncured:?}"));
        }
        accounts += usize::from(
            uncured
                .latest_deadlock
                .is_some_and(|shown| shown.contains("WE ROLL BACK")),
        );
        let cured = play(&ctx, lesson, true, false).await?;
        if cured.error.is_some() || cured.committed != [Side::A, Side::B] {
            return Err(format!("with the cure: {cured:?}"));
        }
    }
    // Another test's deadlock may take the place of ours, but not each time.
    if (lesson.error == DEADLOCK) != (accounts > 0) {
        return Err(format!(
            "the server's own account was shown {accounts} times"
        ));
    }
    let retried = play(&ctx, lesson, false, true).await?;
    if retried.error != Some(lesson.error)
        || retried.committed != [Side::A, Side::B]
        || retried.retries == 0
    {
        return Err(format!("with retries: {retried:?}"));
    }
    let left = left_behind(&mut root, &database).await?;
    if left.is_empty() { Ok(()) } else { Err(left) }
}

/// Tables, and transactions of connections to this database.
async fn left_behind(root: &mut MySqlConnection, database: &str) -> Result<String, String> {
    const TABLES: &str =
        "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?";
    const OPEN: &str = "SELECT CAST(trx_mysql_thread_id AS CHAR) FROM information_schema.INNODB_TRX \
                        JOIN information_schema.PROCESSLIST ON ID = trx_mysql_thread_id WHERE DB = ?";
    // The server repeats itself for 100 ms.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let mut left = Vec::new();
    for query in [TABLES, OPEN] {
        let found: Vec<String> = sqlx::query_scalar(query)
            .bind(database)
            .fetch_all(&mut *root)
            .await
            .map_err(|e| e.to_string())?;
        left.extend(found);
    }
    Ok(left.join(", "))
}

/// The twin of what is asked of each lesson.
pub(crate) async fn a_transaction_that_is_left_open_is_seen(servers: &Servers) -> Outcome {
    let (ctx, mut root) = alone(servers, "root", "alone_open").await?;
    let mut conn = ctx
        .mysql(Duration::from_secs(10))
        .await
        .map_err(|e| e.to_string())?;
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "START TRANSACTION",
        "INSERT INTO t VALUES (1)",
    ] {
        conn.execute(sql).await.map_err(|e| e.to_string())?;
    }
    conn.done();
    let left = left_behind(&mut root, "alone_open").await?;
    if left.split(", ").count() == 2 {
        Ok(())
    } else {
        Err(format!("left: {left}"))
    }
}

/// A play that was begun ends by itself.
pub(crate) async fn a_play_whose_client_goes_away_leaves_nothing(servers: &Servers) -> Outcome {
    let lesson = deadlocks::find("lock-wait").ok_or("no lesson")?;
    let (ctx, mut root) = alone(servers, "root", "alone_gone").await?;
    let client = tokio::spawn(async move { play(&ctx, lesson, false, true).await });
    // With the table there are transactions soon, and B waits for a second.
    while left_behind(&mut root, "alone_gone")
        .await?
        .split(", ")
        .count()
        < 2
    {
        if client.is_finished() {
            return Err(format!("nothing was seen of it: {:?}", client.await));
        }
    }
    client.abort();
    for _ in 0..100 {
        if left_behind(&mut root, "alone_gone").await?.is_empty() {
            return Ok(());
        }
    }
    left_behind(&mut root, "alone_gone").await.and_then(Err)
}

/// EXPLAIN and the number of locked rows say why the index is the cure.
pub(crate) async fn an_update_without_an_index_locks_every_row(servers: &Servers) -> Outcome {
    let lesson = deadlocks::find("full-scan").ok_or("no lesson")?;
    let (ctx, _) = alone(servers, "root", "alone_rows").await?;
    let (uncured, cured) = (
        play(&ctx, lesson, false, false).await?,
        play(&ctx, lesson, true, false).await?,
    );
    let most =
        |replay: &DeadlockReplay| replay.steps.iter().filter_map(|step| step.row_locks).max();
    if most(&uncured) < Some(100) || most(&cured) > Some(5) || most(&cured) < Some(1) {
        return Err(format!(
            "locked at most {:?} without the index, {:?} with it",
            most(&uncured),
            most(&cured)
        ));
    }
    // MariaDB calls a scan of all rows by the primary key `index`, MySQL `ALL`.
    let scans = |plan: &DeadlockPlan| matches!(plan.r#type.as_deref(), Some("ALL" | "index"));
    match (&uncured.plans[..], &cured.plans[..]) {
        ([plan], [before, after])
            if scans(plan) && scans(before) && after.key.as_deref() == Some("idx_code") =>
        {
            Ok(())
        }
        plans => Err(format!("plans: {plans:?}")),
    }
}

/// The lesson is played all the same; what the server keeps to itself is said.
pub(crate) async fn without_the_privilege_a_deadlock_is_played_and_its_account_is_said_to_be_missing(
    servers: &Servers,
) -> Outcome {
    let lesson = deadlocks::find("opposite-order").ok_or("no lesson")?;
    let (ctx, mut root) = alone(servers, "poor", "alone_poor").await?;
    for sql in [
        "CREATE USER poor@'%'",
        "GRANT ALL ON alone_poor.* TO poor@'%'",
    ] {
        root.execute(sql).await.map_err(|e| e.to_string())?;
    }
    let url = ctx.config.mysql.url.expose_secret();
    let played = play(&ctx, lesson, false, false)
        .await
        .map_err(|e| format!("{url}: {e}"))?;
    match &played.latest_deadlock {
        Some(why) if why.contains("PROCESS") && played.error == Some(DEADLOCK) => Ok(()),
        _ => Err(format!("{played:?}")),
    }
}
