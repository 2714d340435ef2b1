//! The lessons on deadlocks, played on the real server: a victim that tries again commits, and nothing is left of a play. The error
//! and the cure of each are tried by the course.

use crate::support::*;
use oversell::{
    classroom::deadlocks::{self, DeadlockLesson, DeadlockReplay, Side},
    ctx::Ctx,
};
use sqlx::{Executor, MySqlConnection, Row};

async fn play(ctx: &Ctx, lesson: &'static DeadlockLesson, cured: bool, retry: bool) -> Result<DeadlockReplay> {
    let played = deadlocks::replay(ctx, lesson, cured, retry).await;
    played.with_context(|| format!("{}, cured {cured}, retry {retry}", lesson.slug))
}

/// Each shows its error, both transactions commit, and nothing is left.
#[apply(test!)]
async fn a_victim_that_tries_again_commits(servers: &Servers) -> Result<()> {
    let (mut root, ctx) = servers.database("alone_again").await?;
    for lesson in deadlocks::ALL.iter() {
        let retried = play(&ctx, lesson, false, true).await?;
        ensure!(
            retried.error == Some(lesson.error) && retried.committed == [Side::A, Side::B] && retried.retries != 0,
            "{}: {retried:?}",
            lesson.slug
        );
        let left = left_tables_and_connections(&mut root, "alone_again").await?;
        ensure!(left.is_empty(), "{} leaves {left}", lesson.slug);
    }
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
    let (mut root, ctx) = servers.database("alone_open").await?;
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
    let (mut root, ctx) = servers.database("alone_gone").await?;
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
