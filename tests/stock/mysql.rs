//! MySQL's strategies: bounded waits, connections that return to the pool, the course's own database; with the twins of
//! these tests.

use crate::support::*;
use futures::future::{join_all, try_join_all};
use oversell::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job, Pause, Point},
    stock::{self, Store, Strategy, assumptions::other_settings},
    stock_admin,
};
use oversell_lab::{
    clients::proxy::Proxy,
    migrations::{migrator, tables_in_the_way},
};
use sqlx::{Connection, Executor, MySqlConnection, migrate::Migrator};
use std::{sync::Arc, time::Instant};
use tokio::{task::JoinHandle, time::timeout};

type Running = JoinHandle<Result<Deduction, Error>>;

const STOCK: i64 = 1000;
const NOW: Duration = Duration::ZERO;
const WAIT_LIMIT: Duration = Duration::from_millis(400);
/// For a held row: even a busy machine reaches the row within it.
const ROW_WAIT: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The least time limit of an answer in a strategy.
const LEAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

fn on_mysql() -> impl Iterator<Item = &'static Strategy> {
    stock::ALL.iter().filter(|s| s.spec.store == Store::MySql)
}

/// Another transaction that holds the row.
async fn holding(servers: &Servers, site: &Site) -> Result<MySqlConnection> {
    let mut holder = servers.outsider().await?;
    holder.execute("START TRANSACTION").await?;
    let row = sqlx::query("SELECT count FROM db_stock WHERE id = ? FOR UPDATE").bind(site.id);
    row.execute(&mut holder).await?;
    Ok(holder)
}

/// A request for a held row is refused within its wait, and the refusal names the row.
async fn is_refused_in_time(slug: &str, deduct: Deduct, ctx: &Ctx, id: i64) -> Result<()> {
    let job = Job::new(id, NOW, ROW_WAIT);
    match tokio::time::timeout(ANSWER_TIMEOUT, deduct(ctx, &job)).await {
        Ok(Err(Error::Timeout { what, .. })) if what.starts_with("row in ") => Ok(()),
        Ok(other) => bail!("{slug}: {other:?}"),
        Err(_) => bail!("{slug}: not answered after {ANSWER_TIMEOUT:?}"),
    }
}

/// Twice, to see that the first released what it had (a mutex, a lock).
#[apply(test!)]
async fn a_write_waits_for_a_row_no_longer_than_it_may(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let holder = holding(servers, &site).await?;
    let strategies: Vec<_> = on_mysql().collect();
    for some in strategies.chunks(12) {
        // Strategies that share a mutex are neighbours in the list, and so run on two instances.
        let tried = join_all(some.iter().zip(site.ctxs.iter().cycle()).map(async |(strategy, ctx)| {
            is_refused_in_time(strategy.slug, strategy.spec.deduct, ctx, site.id).await?;
            is_refused_in_time(strategy.slug, strategy.spec.deduct, ctx, site.id).await
        }));
        tried.await.into_iter().collect::<Result<()>>()?;
    }
    holder.close().await?;
    ensure!(site.stock(Store::MySql).await == STOCK, "a request that was refused has sold a piece");
    for strategy in &strategies {
        // A row has one source of fencing tokens from one reset to the next.
        site.put_stock(STOCK).await;
        let job = Job::new(site.id, NOW, TEST_WAIT_LIMIT);
        (strategy.spec.deduct)(&site.ctxs[1], &job).await.context(strategy.slug)?;
        let gone = STOCK - site.stock(Store::MySql).await;
        ensure!(gone == 1, "{}: one was sold, and {gone} left the shelf", strategy.slug);
    }
    Ok(())
}

/// The twin waits for as long as the server allows.
#[apply(test!)]
async fn a_write_without_a_bound_is_caught(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let _holder = holding(servers, &site).await?;
    let twin: Deduct = |ctx, job| Box::pin(unbounded(ctx, job));
    let verdict = is_refused_in_time("twin", twin, &site.ctxs[0], site.id).await;
    caught(verdict, "not answered")
}

async fn unbounded(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    sqlx::query("UPDATE db_stock SET count = count - 1 WHERE id = ?").bind(job.request.stock_id).execute(&mut *conn).await?;
    conn.done();
    Ok(Deduction::default())
}

/// The id of the instance's only connection.
async fn connection(ctx: &Ctx) -> Result<i64> {
    let mut conn = ctx.mysql(TEST_WAIT_LIMIT).await?;
    let id = sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS SIGNED)").fetch_one(&mut *conn).await?;
    conn.done();
    Ok(id)
}

/// Refused requests keep using the existing connection. One that took as long as an answer may take counts for nothing: a
/// strategy whose limit passes while the machine stops closes its connection.
async fn keeps_its_connection(slug: &str, deduct: Deduct, ctx: &Ctx, id: i64, mut requests: usize) -> Result<()> {
    let refused = async {
        while requests > 0 {
            let (before, asked) = (connection(ctx).await?, Instant::now());
            match deduct(ctx, &Job::new(id, NOW, WAIT_LIMIT)).await {
                Err(Error::NoProduct(_) | Error::SoldOut | Error::Timeout { .. }) => {}
                other => bail!("{slug}: {other:?}"),
            }
            let after = connection(ctx).await?;
            if asked.elapsed() < LEAST_ANSWER_TIMEOUT {
                ensure!(after == before, "{slug}: the refusal has cost the connection");
                requests -= 1;
            }
        }
        Ok(())
    };
    within_limit(&format!("{slug}: refusals in time"), refused).await?
}

/// A database that was away has closed idle connections: administration works all the same once it is back.
#[apply(test!)]
async fn work_at_the_desk_needs_no_connection_from_before(servers: &Servers) -> Result<()> {
    let url = servers.mysql();
    let place = url.split(['@', '/']).find(|part| part.contains(':') && !part.ends_with(':'));
    let place = place.context("no host and port")?;
    let proxy = Proxy::to(place)?;
    let through = url.replace(place, &proxy.address());
    let ctx = servers.with(|config| config.mysql.url = through.into());
    let conn = || async { Ok::<_, Error>(ctx.admin_pool.conn(ROW_WAIT).await?) };
    let both = [conn().await?, conn().await?];
    proxy.cut();
    proxy.mend();
    for mut conn in both {
        let dies = async { while conn.ping().await.is_ok() {} };
        timeout(ANSWER_TIMEOUT, dies).await.context("the way was not cut")?;
        conn.done();
    }
    let twin = conn().await?.ping().await;
    ensure!(twin.is_err(), "nothing has died: the test shows nothing");
    Ok(ctx.admin_conn(ROW_WAIT).await?.ping().await?)
}

#[apply(test!)]
async fn a_refusal_costs_no_connection(servers: &Servers) -> Result<()> {
    const AT_ONCE: usize = 4;
    let some = (0..AT_ONCE).map(async |n| {
        let ctx = servers.with(|config| config.mysql.pool = 1);
        let [nothing, empty, held] = [servers.site().await, servers.site().await, servers.site().await];
        held.put_stock(STOCK).await;
        let _holder = holding(servers, &held).await?;
        for strategy in on_mysql().skip(n).step_by(AT_ONCE) {
            keeps_its_connection(strategy.slug, strategy.spec.deduct, &ctx, nothing.id, 2).await?;
            // Each is the row's first source of fencing tokens.
            empty.put_stock(0).await;
            keeps_its_connection(strategy.slug, strategy.spec.deduct, &ctx, empty.id, 2).await?;
            keeps_its_connection(strategy.slug, strategy.spec.deduct, &ctx, held.id, 1).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(some).await.map(drop)
}

/// The twin returns by `?` with the connection in use.
#[apply(test!)]
async fn a_refusal_that_drops_its_connection_is_caught(servers: &Servers) -> Result<()> {
    let ctx = servers.with(|config| config.mysql.pool = 1);
    let nothing = servers.site().await;
    let twin: Deduct = |ctx, job| Box::pin(careless(ctx, job));
    let verdict = keeps_its_connection("twin", twin, &ctx, nothing.id, 1).await;
    caught(verdict, "cost the connection")
}

async fn careless(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let row = sqlx::query("SELECT count FROM db_stock WHERE id = ?").bind(job.request.stock_id);
    row.fetch_optional(&mut *conn).await?.ok_or(Error::NoProduct(job.request.stock_id))?;
    conn.done();
    Err(Error::SoldOut)
}

/// Buys a piece by this strategy.
async fn buy(ctx: &Ctx, slug: &str, id: i64) -> Result<Deduction> {
    let deduct = stock::find(slug).context("no such strategy")?.spec.deduct;
    let bought = deduct(ctx, &Job::new(id, NOW, TEST_WAIT_LIMIT)).await;
    bought.with_context(|| slug.to_owned())
}

/// A running request, and its job.
fn start(ctx: &Arc<Ctx>, slug: &'static str, job: Job) -> (Running, Arc<Job>) {
    let (ctx, job) = (Arc::clone(ctx), Arc::new(job));
    let deduct = stock::find(slug).expect("a strategy").spec.deduct;
    let asked = Arc::clone(&job);
    (tokio::spawn(async move { deduct(&ctx, &asked).await }), job)
}

/// As soon as it is stopped between read and write.
async fn stopped(ctx: &Arc<Ctx>, slug: &'static str, mut job: Job) -> Result<(Running, Arc<Job>, Pause)> {
    let mut pause = job.pause_at(Point::Read);
    let (running, job) = start(ctx, slug, job);
    within_limit(&format!("{slug} at its write"), pause.wait_until_reached()).await?;
    Ok((running, job, pause))
}

/// With one connection and a visitor inside: whether a request for another product gets through.
async fn lets_others_through(servers: &Servers, slug: &'static str, wait: Duration) -> Result<bool> {
    let ctx = servers.with(|config| config.mysql.pool = 1);
    wait_until("zookeeper is there", || async { Ok(ctx.zk.session().is_ok()) }).await?;
    let [theirs, ours] = [servers.site().await, servers.site().await];
    theirs.put_stock(STOCK).await;
    ours.put_stock(STOCK).await;
    let (staying, job) = start(&ctx, slug, Job::new(theirs.id, 2 * TEST_WAIT_LIMIT, TEST_WAIT_LIMIT));
    wait_until(&format!("{slug} is inside"), || async { Ok(job.observation.has_entered()) }).await?;
    let passed = start(&ctx, "none", Job::new(ours.id, NOW, wait)).0.await?;
    staying.abort();
    match passed {
        Ok(_) => Ok(true),
        Err(Error::Timeout { what, .. }) if what == "mysql connection pool" => Ok(false),
        other => bail!("{slug}: {other:?}"),
    }
}

/// Without a transaction each statement takes its own connection, so visitors that stay do not use up the pool. A
/// transaction, or a lock that is the connection, keeps one; this test would find it.
#[apply(test!)]
async fn a_visitor_without_a_transaction_holds_no_connection(servers: &Servers) -> Result<()> {
    const CONNECTION_HOLDERS: [&str; 5] =
        ["mutex-commit-late", "select-for-update", "select-for-update-retried", "select-share", "mysql-named-lock"];
    // The merged strategy waits before it enters.
    for strategy in on_mysql().filter(|s| s.slug != "single-update-merged") {
        let holds_one = CONNECTION_HOLDERS.contains(&strategy.slug);
        // The request may be slow on a busy machine, but must be faster than the stay.
        let wait = if holds_one { WAIT_LIMIT } else { TEST_WAIT_LIMIT };
        let through = lets_others_through(servers, strategy.slug, wait).await?;
        ensure!(through != holds_one, "{}: others get through: {through}", strategy.slug);
    }
    Ok(())
}

/// Pieces in buckets count, are untouched by a strategy that sells from the row, and return after a reset.
#[apply(test!)]
async fn pieces_in_buckets_are_never_lost(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let mut outsider = servers.outsider().await?;
    let mut counts = async || -> Result<(i64, i64)> {
        let row = sqlx::query_scalar("SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?");
        let in_row = row.bind(site.id).fetch_one(&mut outsider).await?;
        Ok((in_row, site.stock(Store::MySql).await))
    };
    for slug in ["single-update-buckets", "none"] {
        buy(&site.ctxs[0], slug, site.id).await?;
    }
    let (in_row, on_shelf) = counts().await?;
    ensure!(
        in_row < STOCK - 2 && on_shelf == STOCK - 2,
        "{in_row} in the row, {on_shelf} on the shelf, after two of {STOCK} were sold"
    );
    stock_admin::reset(&site.ctxs[0], site.id, STOCK, None).await?;
    let reset = counts().await?;
    ensure!(reset == (STOCK, STOCK), "in the row and on the shelf after a reset to {STOCK}: {reset:?}");
    Ok(())
}

/// The holder's connection is killed: another gets in at once, and the late holder sells nothing, since its write uses
/// the same connection as its lock.
#[apply(test!)]
async fn a_named_lock_goes_with_its_connection(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let asked = Job::new(site.id, NOW, TEST_WAIT_LIMIT);
    let (late, job, between) = stopped(&site.ctxs[0], "mysql-named-lock", asked).await?;
    let mut outsider = servers.outsider().await?;
    let holder = sqlx::query_scalar("SELECT CAST(IS_USED_LOCK(CONCAT(DATABASE(), '.', ?)) AS SIGNED)");
    let holder: i64 = holder.bind(job.redis_name("stock")).fetch_one(&mut outsider).await?;
    outsider.execute(format!("KILL {holder}").as_str()).await?;
    buy(&site.ctxs[1], "mysql-named-lock", site.id).await?;
    between.resume();
    let late = late.await?;
    match (late, STOCK - site.stock(Store::MySql).await) {
        (Err(Error::Unknown { .. }), 1) => Ok(()),
        other => bail!("the late holder and what left the shelf: {other:?}"),
    }
}

/// MySQL takes 64 characters as the name of a lock, and a database has up to 64 itself.
#[apply(test!)]
async fn a_long_database_name_has_a_named_lock_too(servers: &Servers) -> Result<()> {
    let name = format!("shop_{}", "x".repeat(55));
    let (mut outsider, ctx) = servers.database(&name).await?;
    migrate(&ctx).await;
    let (holder, _, between) = stopped(&ctx, "mysql-named-lock", Job::new(1, NOW, TEST_WAIT_LIMIT)).await?;
    let held = "SELECT IS_USED_LOCK(CONCAT(LEFT(SHA2(DATABASE(), 256), 38), '.stock')) IS NOT NULL";
    let is_held: bool = sqlx::query_scalar(held).fetch_one(&mut outsider).await?;
    let second = Job::new(1, NOW, WAIT_LIMIT);
    let second = (stock::find("mysql-named-lock").context("no strategy")?.spec.deduct)(&ctx, &second).await;
    between.resume();
    holder.await??;
    ensure!(is_held, "the lock has another name");
    ensure!(matches!(second, Err(Error::Timeout { .. })), "beside the holder: {second:?}");
    buy(&ctx, "mysql-named-lock", 1).await?;
    ensure!(!sqlx::query_scalar::<_, bool>(held).fetch_one(&mut outsider).await?, "it was not released");
    Ok(())
}

/// Other settings than the strategies need are named: the twin of a pool that sets them.
#[apply(test!)]
async fn other_settings_of_a_session_are_named(servers: &Servers) -> Result<()> {
    let ctx = servers.with(|_| ());
    let mut conn = ctx.mysql(TEST_WAIT_LIMIT).await?;
    let said = other_settings(&mut conn).await?;
    ensure!(said.is_none(), "{said:?}");
    for (setting, named) in
        [("autocommit = 0", "autocommit is OFF"), ("TRANSACTION ISOLATION LEVEL READ COMMITTED", "isolation is READ-COMMITTED")]
    {
        conn.execute(format!("SET SESSION {setting}").as_str()).await?;
        let said = other_settings(&mut conn).await?;
        ensure!(said.as_ref().is_some_and(|said| said.contains(named)), "{setting}: {said:?}");
    }
    Ok(())
}

/// §1.2 and §4 as in the course: with rows, one of them a held lock.
const COURSE_TABLES: [&str; 4] = [
    "CREATE TABLE `db_stock` (`id` bigint(20) NOT NULL AUTO_INCREMENT, `product_code` varchar(255) DEFAULT NULL, \
     `stock_code` varchar(255) DEFAULT NULL, `count` int(11) DEFAULT NULL, PRIMARY KEY (`id`)) \
     ENGINE=InnoDB AUTO_INCREMENT=1 DEFAULT CHARSET=utf8",
    "INSERT INTO `db_stock` VALUES (1, '1001', '001', 4870), (2, '1002', '002', 7)",
    "CREATE TABLE `tb_lock` (`id` bigint(20) NOT NULL AUTO_INCREMENT, `lock_name` varchar(50) NOT NULL, \
     `class_name` varchar(100) DEFAULT NULL, `method_name` varchar(50) DEFAULT NULL, \
     `server_name` varchar(50) DEFAULT NULL, `thread_name` varchar(50) DEFAULT NULL, \
     `create_time` timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, `desc` varchar(100) DEFAULT NULL, \
     PRIMARY KEY (`id`), UNIQUE KEY `idx_unique` (`lock_name`)) \
     ENGINE=InnoDB AUTO_INCREMENT=1332899824461455363 DEFAULT CHARSET=utf8",
    "INSERT INTO `tb_lock` (lock_name, class_name) VALUES ('lock', 'com.atguigu.StockService')",
];

/// Some of the migrations.
fn only(versions: &[i64]) -> Migrator {
    let some = migrator().iter().filter(|m| versions.contains(&m.version)).cloned().collect();
    Migrator { migrations: some, ..Migrator::DEFAULT }
}

#[apply(test!)]
async fn a_database_of_the_course_is_taken_over_with_its_rows(servers: &Servers) -> Result<()> {
    let (mut outsider, ctx) = servers.database("of_the_course").await?;
    for statement in COURSE_TABLES {
        outsider.execute(statement).await?;
    }
    // Premise of the test: without stepping aside the tables are in the way.
    ensure!(only(&[1, 2, 4]).run(&mut outsider).await.is_err(), "the course's tables were in nobody's way");
    outsider.execute("DROP TABLE _sqlx_migrations").await?;
    migrator().run(&mut outsider).await?;
    // Once more, as at the next start.
    migrator().run(&mut outsider).await?;
    let counts = [stock_admin::count(&ctx, Store::MySql, 1).await, stock_admin::count(&ctx, Store::MySql, 2).await];
    ensure!(matches!(counts, [Ok(4870), Ok(7)]), "the stock of the course: {counts:?}");
    // The held lock is still held; once it is deleted, all works as anywhere.
    let blocked = start(&ctx, "table-lock", Job::new(1, NOW, WAIT_LIMIT)).0.await?;
    ensure!(matches!(blocked, Err(Error::Timeout { .. })), "beside the lock of the course: {blocked:?}");
    outsider.execute("DELETE FROM tb_lock").await?;
    for slug in ["table-lock", "version-cas", "single-update-buckets"] {
        buy(&ctx, slug, 1).await?;
    }
    match stock_admin::count(&ctx, Store::MySql, 1).await {
        Ok(4867) => Ok(()),
        other => bail!("after three were sold: {other:?}"),
    }
}

/// A database that another program's seckill uses too: nothing is changed that would need repair by hand.
#[apply(test!)]
async fn tables_of_another_program_are_named_before_anything_is_made(servers: &Servers) -> Result<()> {
    let (mut outsider, _) = servers.database("of_others").await?;
    let ours = tables_in_the_way(&mut outsider).await?;
    ensure!(ours.is_empty(), "in an empty database: {ours:?}");
    for statement in COURSE_TABLES {
        outsider.execute(statement).await?;
    }
    for table in ["tb_seckill_voucher", "tb_voucher_order", "tb_shop"] {
        let create = format!("CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY)");
        outsider.execute(create.as_str()).await?;
    }
    let found = tables_in_the_way(&mut outsider).await?;
    ensure!(found == ["tb_seckill_voucher", "tb_voucher_order"], "{found:?}");
    outsider.execute("RENAME TABLE tb_seckill_voucher TO theirs, tb_voucher_order TO theirs_too").await?;
    migrator().run(&mut outsider).await?;
    let ours = tables_in_the_way(&mut outsider).await?;
    ensure!(ours.is_empty(), "after they were made: {ours:?}");
    Ok(())
}

#[apply(test!)]
async fn a_database_of_an_earlier_version_goes_on(servers: &Servers) -> Result<()> {
    let (mut outsider, ctx) = servers.database("of_an_earlier_version").await?;
    only(&[1, 2]).run(&mut outsider).await?;
    outsider.execute("UPDATE db_stock SET count = 77, version = 9, fence = 3").await?;
    migrator().run(&mut outsider).await?;
    buy(&ctx, "single-update-buckets", 1).await?;
    let row: (i64, u64) = sqlx::query_as("SELECT version, fence FROM db_stock").fetch_one(&mut outsider).await?;
    match (row, stock_admin::count(&ctx, Store::MySql, 1).await) {
        ((10, 3), Ok(76)) => Ok(()),
        other => bail!("version, fence and count: {other:?}"),
    }
}

/// Errors of the server, and the words for them: of what an operator can remove the answer names the cause instead of calling it a bug.
/// Without words, whether the write was done is unknown: a server may announce its shutdown through a proxy after it.
const ERRORS: [(u16, Option<&str>); 12] = [
    (3101, Some("another transaction")),
    (4031, Some("that nobody used")),
    (1193, Some("causal_reads")),
    (1290, Some("read-only")),
    (1836, Some("read-only")),
    (1114, Some("full")),
    (1047, Some("not part of its cluster")),
    (1045, Some("correct mysql.url")),
    (1142, Some("may not do this")),
    (1146, Some("a table is missing")),
    (1053, None),
    (1927, None),
];

#[apply(test!)]
async fn errors_of_the_server_are_named_or_unknown(servers: &Servers) -> Result<()> {
    let (mut outsider, ctx) = servers.database("refusing").await?;
    let site = shelf(&ctx).await;
    site.put_stock(10).await;
    let ask = async |slug| {
        let deduct = stock::find(slug).context("no such strategy")?.spec.deduct;
        anyhow::Ok(deduct(&ctx, &Job::new(site.id, NOW, TEST_WAIT_LIMIT)).await)
    };
    for (number, words) in ERRORS {
        let state = if words.is_some() { "HY000" } else { "08S01" };
        outsider.execute("DROP TRIGGER IF EXISTS refuses").await?;
        let trigger = format!(
            "CREATE TRIGGER refuses BEFORE UPDATE ON db_stock FOR EACH ROW \
             SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'refused'"
        );
        outsider.execute(trigger.as_str()).await?;
        for slug in ["single-update", "none", "select-for-update", "version-cas"] {
            match (ask(slug).await?, words) {
                (Err(Error::Refuses { server: "mysql", why, .. }), Some(words)) if why.contains(words) => {}
                (Err(Error::Unknown { .. }), None) => {}
                (came, _) => bail!("{number}, {slug}: {came:?}"),
            }
        }
    }
    outsider.execute("DROP TABLE db_stock").await?;
    match ask("none").await? {
        Err(Error::Refuses { why, .. }) if why.contains("missing") => Ok(()),
        came => bail!("{came:?}"),
    }
}

/// The statement exceeds its limit, the connection for KILL is refused (error 1045), then the row is free: the server's
/// answer counts, with a transaction and without.
#[apply(test!)]
async fn an_answer_wins_over_a_refused_kill(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    let (mut user, ctx) = servers.user(&format!("shop_{}", site.id), "test").await?;
    wait_until("zookeeper is there", || async { Ok(ctx.zk.session().is_ok()) }).await?;
    let mut sold = 0;
    for strategy in on_mysql() {
        // Empties the buckets too: a strategy that finds a piece in its bucket does not need the held row.
        site.put_stock(STOCK).await;
        user.refuse_later_connections(&ctx).await?;
        let refusals = user.refusals().await?;
        let mut holder = holding(servers, &site).await?;
        let (mut running, _) = start(&ctx, strategy.slug, Job::new(site.id, NOW, WAIT_LIMIT));
        // On a busy machine its wait may be over before it has a statement, so that nothing is refused.
        let early = tokio::select! {
            refused = user.wait_until_refused(refusals) => refused.map(|()| None)?,
            outcome = &mut running => Some(outcome?),
        };
        holder.execute("ROLLBACK").await?;
        let outcome = match early {
            Some(outcome) => outcome,
            None => timeout(ANSWER_TIMEOUT, running).await.context(strategy.slug)??,
        };
        let gone = STOCK - site.stock(Store::MySql).await;
        agrees(strategy.slug, &outcome, gone)?;
        sold += gone;
    }
    ensure!(sold > 0, "no statement was answered: the test shows nothing");
    Ok(())
}

/// Whether an outcome agrees with the missing pieces.
fn agrees(slug: &str, outcome: &Result<Deduction, Error>, gone: i64) -> Result<()> {
    let possible = match outcome {
        Ok(_) => 1..=1,
        Err(Error::Unknown { .. }) => 0..=1,
        Err(_) => 0..=0,
    };
    ensure!(possible.contains(&gone), "{slug}: {gone} are gone, and it says {outcome:?}");
    Ok(())
}

#[apply(test!)]
fn a_refusal_that_has_sold_is_caught() -> Result<()> {
    let refused = Error::Refuses { server: "mysql", why: "the user of mysql.url may not do this".into(), reason: String::new() };
    caught(agrees("twin", &Err(refused), 1), "1 are gone")?;
    caught(agrees("twin", &Ok(Deduction::default()), 0), "0 are gone")
}
