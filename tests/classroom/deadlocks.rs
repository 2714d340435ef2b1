//! The lessons on deadlocks, played on the real server: each shows its error, and with its cure none.

use crate::support::*;
use oversell::{
    classroom::deadlocks::{self, DEADLOCK, DeadlockLesson, DeadlockPlan, DeadlockReplay, Side},
    ctx::Ctx,
};
use secrecy::ExposeSecret;
use sqlx::{Executor, MySqlConnection, Row};
use std::sync::Arc;

/// An instance with its own database.
async fn instance_with_own_database(
    servers: &Servers,
    user: &str,
    database: &str,
) -> Result<(Arc<Ctx>, MySqlConnection)> {
    let (root, ctx) = servers.database(database).await?;
    let url = ctx.config.mysql.url.expose_secret();
    let url = url.replace("root@", &format!("{user}@"));
    Ok((servers.with(|config| config.mysql.url = url.into()), root))
}

async fn play(ctx: &Ctx, lesson: &'static DeadlockLesson, cured: bool, retry: bool) -> Result<DeadlockReplay> {
    let played = deadlocks::replay(ctx, lesson, cured, retry).await;
    played.with_context(|| format!("{}, cured {cured}, retry {retry}", lesson.slug))
}

/// Without its cure each play shows the error and one transaction commits; with the cure both commit. Every time.
#[apply(test!)]
#[over(deadlocks::ALL.iter().map(|lesson| (lesson.slug, lesson)))]
async fn shows_its_error_and_its_cure_again_and_again(
    servers: &Servers,
    lesson: &'static DeadlockLesson,
) -> Result<()> {
    let database = format!("alone_{}", lesson.slug.replace('-', "_"));
    let (ctx, mut root) = instance_with_own_database(servers, "root", &database).await?;
    let (mut accounts, mut played) = (0, 0);
    // Another test's deadlock may replace ours in the server's account, but not in all of ten plays.
    while played < repetitions() || (lesson.error == DEADLOCK && accounts == 0 && played < 10) {
        played += 1;
        let uncured = play(&ctx, lesson, false, false).await?;
        ensure!(
            uncured.error == Some(lesson.error) && uncured.victim.is_some() && uncured.committed.len() == 1,
            "without the cure: {uncured:?}"
        );
        accounts += usize::from(uncured.latest_deadlock.is_some_and(|shown| shown.contains("WE ROLL BACK")));
        let cured = play(&ctx, lesson, true, false).await?;
        ensure!(cured.error.is_none() && cured.committed == [Side::A, Side::B], "with the cure: {cured:?}");
    }
    ensure!((lesson.error == DEADLOCK) == (accounts > 0), "the server's own account was shown {accounts} times");
    let retried = play(&ctx, lesson, false, true).await?;
    ensure!(
        retried.error == Some(lesson.error) && retried.committed == [Side::A, Side::B] && retried.retries != 0,
        "with retries: {retried:?}"
    );
    let left = left_tables_and_connections(&mut root, &database).await?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

/// Tables, and open connections of this database. INNODB_TRX may repeat to us what it showed another test.
async fn left_tables_and_connections(root: &mut MySqlConnection, database: &str) -> Result<String> {
    const TABLES: &str = "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?";
    const CONNECTED: &str = "SELECT CAST(ID AS CHAR) FROM information_schema.PROCESSLIST WHERE DB = ?";
    let mut found = Vec::new();
    for query in [TABLES, CONNECTED] {
        let rows = sqlx::query_scalar::<_, String>(query).bind(database);
        found.push(rows.fetch_all(&mut *root).await?);
    }
    let status = root.fetch_one("SHOW ENGINE INNODB STATUS").await?;
    let status: String = status.try_get_unchecked("Status")?;
    let is_open = |id: &String| {
        let mut transactions = status.split("---TRANSACTION ").skip(1);
        transactions.any(|one| one.contains(" ACTIVE ") && one.contains(&format!(" thread id {id}, ")))
    };
    found[1].retain(is_open);
    Ok(found.concat().join(", "))
}

/// The twin: a lesson without the property that is checked of each.
#[apply(test!)]
async fn a_transaction_that_is_left_open_is_seen(servers: &Servers) -> Result<()> {
    let (ctx, mut root) = instance_with_own_database(servers, "root", "alone_open").await?;
    let mut conn = ctx.mysql(Duration::from_secs(10)).await?;
    for sql in ["CREATE TABLE t (id INT PRIMARY KEY)", "START TRANSACTION", "INSERT INTO t VALUES (1)"] {
        conn.execute(sql).await?;
    }
    conn.done();
    let left = left_tables_and_connections(&mut root, "alone_open").await?;
    ensure!(left.split(", ").count() == 2, "left: {left}");
    Ok(())
}

#[apply(test!)]
async fn a_play_whose_client_goes_away_leaves_nothing(servers: &Servers) -> Result<()> {
    let lesson = deadlocks::find("lock-wait").context("no lesson")?;
    let (ctx, mut root) = instance_with_own_database(servers, "root", "alone_gone").await?;
    let client = tokio::spawn(async move { play(&ctx, lesson, false, true).await });
    // Once the table exists there are transactions, and B waits for a second.
    while left_tables_and_connections(&mut root, "alone_gone").await?.split(", ").count() < 2 {
        ensure!(!client.is_finished(), "nothing was seen of it: {:?}", client.await);
    }
    client.abort();
    let none_is_left = async {
        while !left_tables_and_connections(&mut root, "alone_gone").await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    within_limit("nothing is left of it", none_is_left).await?
}

/// EXPLAIN and the number of locked rows show why the index is the cure.
#[apply(test!)]
async fn an_update_without_an_index_locks_every_row(servers: &Servers) -> Result<()> {
    let lesson = deadlocks::find("full-scan").context("no lesson")?;
    let (ctx, _) = instance_with_own_database(servers, "root", "alone_rows").await?;
    let (uncured, cured) = (play(&ctx, lesson, false, false).await?, play(&ctx, lesson, true, false).await?);
    let most = |replay: &DeadlockReplay| replay.steps.iter().filter_map(|step| step.row_locks).max();
    ensure!(
        most(&uncured) >= Some(100) && most(&cured) <= Some(5) && most(&cured) >= Some(1),
        "locked at most {:?} without the index, {:?} with it",
        most(&uncured),
        most(&cured)
    );
    // For a full scan by the primary key MariaDB prints `index`, MySQL `ALL`.
    let scans = |plan: &DeadlockPlan| matches!(plan.r#type.as_deref(), Some("ALL" | "index"));
    match (&uncured.plans[..], &cured.plans[..]) {
        ([plan], [before, after]) if scans(plan) && scans(before) && after.key.as_deref() == Some("idx_code") => Ok(()),
        plans => bail!("plans: {plans:?}"),
    }
}

/// The lesson is played all the same, and says what the server does not show.
#[apply(test!)]
async fn without_the_privilege_a_deadlock_lacks_only_its_account(servers: &Servers) -> Result<()> {
    let lesson = deadlocks::find("opposite-order").context("no lesson")?;
    let (ctx, mut root) = instance_with_own_database(servers, "poor", "alone_poor").await?;
    for sql in ["CREATE USER poor@'%'", "GRANT ALL ON alone_poor.* TO poor@'%'"] {
        root.execute(sql).await?;
    }
    let played = play(&ctx, lesson, false, false).await?;
    match &played.latest_deadlock {
        Some(why) if why.contains("PROCESS") && played.error == Some(DEADLOCK) => Ok(()),
        _ => bail!("{played:?}"),
    }
}

/// A play drops the table that a killed instance left, which it knows by its comment. Other tables stay, whatever their
/// names.
#[apply(test!)]
async fn a_play_drops_no_table_of_others(servers: &Servers) -> Result<()> {
    let (mut root, ctx) = servers.database("deadlock_strangers").await?;
    root.execute("CREATE TABLE deadlock_report (id INT)").await?;
    let lesson = deadlocks::find("opposite-order").context("no lesson")?;
    play(&ctx, lesson, false, false).await?;
    // A table with the comment that a play gives its own.
    let ours = "CREATE TABLE deadlock_0badcafe (id INT) \
                COMMENT = 'oversell: the table of one play of a deadlock, dropped at its end'";
    root.execute(ours).await?;
    deadlocks::drop_abandoned_tables(&mut root, Duration::ZERO).await?;
    let left: Vec<String> = sqlx::query_scalar("SHOW TABLES LIKE 'deadlock%'").fetch_all(&mut root).await?;
    ensure!(left == ["deadlock_report"], "left: {left:?}");
    Ok(())
}
