//! What MySQL's strategies promise beside their stock: bounded waits, connections that go back, a database that the course
//! has made; and the twins that show that these tests can fail.

use crate::{
    buyers::{text, until},
    support::{Servers, Site},
};
use futures::future::{BoxFuture, join_all};
use oversell::{
    ctx::Ctx,
    error::Error,
    section::{Deducted, Job, Pause, Point},
    shelf,
    stock::{self, Store, Strategy},
};
use sqlx::{Connection, Executor, MySqlConnection, migrate::Migrator};
use std::{sync::Arc, time::Duration};

type Outcome = Result<(), String>;
type Running = tokio::task::JoinHandle<Result<Deducted, Error>>;
type Deduct = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Deducted, Error>>;

const STOCK: i64 = 100;
const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(30);
/// What a request may wait.
const PATIENCE: Duration = Duration::from_millis(400);
/// What it may wait for a row that is held: a busy machine does not use that up before it comes to the row.
const FOR_A_ROW: Duration = Duration::from_secs(2);
/// What it must have been answered by.
const BOUND: Duration = Duration::from_secs(10);

fn on_mysql() -> impl Iterator<Item = &'static Strategy> {
    stock::ALL.iter().filter(|s| s.store == Store::MySql)
}

/// Somebody else's transaction that holds the row.
async fn holding(servers: &Servers, site: &Site) -> Result<MySqlConnection, String> {
    let mut holder = MySqlConnection::connect(&servers.mysql())
        .await
        .map_err(text)?;
    holder.execute("START TRANSACTION").await.map_err(text)?;
    let row = sqlx::query("SELECT count FROM db_stock WHERE id = ? FOR UPDATE").bind(site.id);
    row.execute(&mut holder).await.map_err(text)?;
    Ok(holder)
}

/// A request that finds the row held is refused, for want of that row, within its wait.
async fn is_refused_in_time(slug: &str, deduct: Deduct, ctx: &Ctx, id: i64) -> Outcome {
    let job = Job::new(id, NOW, FOR_A_ROW);
    match tokio::time::timeout(BOUND, deduct(ctx, &job)).await {
        Ok(Err(Error::NotHad { what, .. })) if what.starts_with("row in ") => Ok(()),
        Ok(other) => Err(format!("{slug}: {other:?}")),
        Err(_) => Err(format!("{slug}: not answered after {BOUND:?}")),
    }
}

/// Twice, so that what the first had of its own (a mutex, a lock) is seen to be free again.
pub(crate) async fn a_write_waits_for_a_row_no_longer_than_it_may(servers: &Servers) -> Outcome {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let holder = holding(servers, &site).await?;
    let strategies: Vec<_> = on_mysql().collect();
    for some in strategies.chunks(6) {
        // Two that share a mutex are neighbours in the registry, and so in two instances.
        let tried = join_all(some.iter().zip(site.ctxs.iter().cycle()).map(
            async |(strategy, ctx)| {
                is_refused_in_time(strategy.slug, strategy.deduct, ctx, site.id).await?;
                is_refused_in_time(strategy.slug, strategy.deduct, ctx, site.id).await
            },
        ));
        tried.await.into_iter().collect::<Outcome>()?;
    }
    holder.close().await.map_err(text)?;
    if site.stock(Store::MySql).await != STOCK {
        return Err("a request that was refused has sold a piece".into());
    }
    for strategy in &strategies {
        let job = Job::new(site.id, NOW, LONG);
        (strategy.deduct)(&site.ctxs[1], &job)
            .await
            .map_err(|e| format!("{}: {e}", strategy.slug))?;
    }
    match STOCK - site.stock(Store::MySql).await {
        gone if gone == strategies.len() as i64 => Ok(()),
        gone => Err(format!(
            "{} were sold, and {gone} left the shelf",
            strategies.len()
        )),
    }
}

/// The twin waits as long as the server lets it.
pub(crate) async fn a_write_without_a_bound_is_caught(servers: &Servers) -> Outcome {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let _holder = holding(servers, &site).await?;
    match is_refused_in_time(
        "twin",
        |ctx, job| Box::pin(unbounded(ctx, job)),
        &site.ctxs[0],
        site.id,
    )
    .await
    {
        Err(text) if text.contains("not answered") => Ok(()),
        other => Err(format!("not caught: {other:?}")),
    }
}

async fn unbounded(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    sqlx::query("UPDATE db_stock SET count = count - 1 WHERE id = ?")
        .bind(job.request.stock_id)
        .execute(&mut *conn)
        .await?;
    conn.done();
    Ok(Deducted::default())
}

/// The number of the only connection that this instance has.
async fn connection(ctx: &Ctx) -> Result<i64, String> {
    let mut conn = ctx.mysql(LONG).await.map_err(text)?;
    let id = sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS SIGNED)")
        .fetch_one(&mut *conn)
        .await
        .map_err(text)?;
    conn.done();
    Ok(id)
}

/// Requests that are refused go on with the connection that there is.
async fn keeps_its_connection(
    slug: &str,
    deduct: Deduct,
    ctx: &Ctx,
    id: i64,
    requests: usize,
) -> Outcome {
    let before = connection(ctx).await?;
    for _ in 0..requests {
        match deduct(ctx, &Job::new(id, NOW, PATIENCE)).await {
            Err(Error::NoProduct(_) | Error::SoldOut | Error::NotHad { .. }) => {}
            other => return Err(format!("{slug}: {other:?}")),
        }
    }
    match connection(ctx).await? {
        after if after == before => Ok(()),
        _ => Err(format!("{slug}: the refusal has cost the connection")),
    }
}

pub(crate) async fn a_refusal_costs_no_connection(servers: &Servers) -> Outcome {
    let ctx = servers.with(|config| config.mysql.pool = 1);
    let [nothing, empty, held] = [
        servers.site().await,
        servers.site().await,
        servers.site().await,
    ];
    empty.put_stock(0).await;
    held.put_stock(STOCK).await;
    let _holder = holding(servers, &held).await?;
    for strategy in on_mysql() {
        keeps_its_connection(strategy.slug, strategy.deduct, &ctx, nothing.id, 50).await?;
        keeps_its_connection(strategy.slug, strategy.deduct, &ctx, empty.id, 5).await?;
        keeps_its_connection(strategy.slug, strategy.deduct, &ctx, held.id, 1).await?;
    }
    Ok(())
}

/// The twin leaves by `?` with the connection in its hand.
pub(crate) async fn a_refusal_that_drops_its_connection_is_caught(servers: &Servers) -> Outcome {
    let ctx = servers.with(|config| config.mysql.pool = 1);
    let nothing = servers.site().await;
    match keeps_its_connection(
        "twin",
        |ctx, job| Box::pin(careless(ctx, job)),
        &ctx,
        nothing.id,
        1,
    )
    .await
    {
        Err(text) if text.contains("cost the connection") => Ok(()),
        other => Err(format!("not caught: {other:?}")),
    }
}

async fn careless(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let row = sqlx::query("SELECT count FROM db_stock WHERE id = ?").bind(job.request.stock_id);
    row.fetch_optional(&mut *conn)
        .await?
        .ok_or(Error::NoProduct(job.request.stock_id))?;
    conn.done();
    Err(Error::SoldOut)
}

/// A request on its way, and the job to look at.
fn start(ctx: &Arc<Ctx>, slug: &'static str, job: Job) -> (Running, Arc<Job>) {
    let (ctx, job) = (Arc::clone(ctx), Arc::new(job));
    let deduct = stock::find(slug).expect("a strategy").deduct;
    let asked = Arc::clone(&job);
    (tokio::spawn(async move { deduct(&ctx, &asked).await }), job)
}

/// The same, as soon as it is stopped between its read and its write.
async fn stopped(
    ctx: &Arc<Ctx>,
    slug: &'static str,
    mut job: Job,
) -> Result<(Running, Arc<Job>, Pause), String> {
    let pause = job.pause_at(Point::Read);
    let (running, job) = start(ctx, slug, job);
    let reached = tokio::time::timeout(LONG, pause.reached()).await;
    reached.map_err(|_| format!("{slug}: the job never came to its write"))?;
    Ok((running, job, pause))
}

async fn inside(job: &Job) -> Outcome {
    until("it is inside", || async { Ok(job.seen.has_entered()) }).await
}

/// Of an instance with one connection somebody is inside: whether another request for another product gets through.
async fn lets_others_through(
    servers: &Servers,
    slug: &'static str,
    wait: Duration,
) -> Result<bool, String> {
    let ctx = servers.with(|config| config.mysql.pool = 1);
    until("zookeeper is there", || async {
        Ok(ctx.zk.session().is_ok())
    })
    .await?;
    let [theirs, ours] = [servers.site().await, servers.site().await];
    theirs.put_stock(STOCK).await;
    ours.put_stock(STOCK).await;
    let (staying, job) = start(&ctx, slug, Job::new(theirs.id, 2 * LONG, LONG));
    inside(&job).await.map_err(|e| format!("{slug}: {e}"))?;
    let passed = start(&ctx, "none", Job::new(ours.id, NOW, wait))
        .0
        .await
        .map_err(text)?;
    staying.abort();
    match passed {
        Ok(_) => Ok(true),
        Err(Error::NotHad { what, .. }) if what == "mysql connection pool" => Ok(false),
        other => Err(format!("{slug}: {other:?}")),
    }
}

/// Without a transaction a connection is taken for each statement: visitors who stay do not use up the pool. In a
/// transaction, or with a lock that is the connection, they do; that is what this test would say of the others too.
pub(crate) async fn who_stays_without_a_transaction_holds_no_connection(
    servers: &Servers,
) -> Outcome {
    const HOLD_ONE: [&str; 4] = [
        "mutex-commit-late",
        "select-for-update",
        "select-share",
        "mysql-named-lock",
    ];
    // The merged one stays before it enters anything.
    for strategy in on_mysql().filter(|s| s.slug != "single-update-merged") {
        let holds_one = HOLD_ONE.contains(&strategy.slug);
        // Who must get through may take its time on a busy machine, though less than the stay.
        let wait = if holds_one { PATIENCE } else { LONG };
        let through = lets_others_through(servers, strategy.slug, wait).await?;
        if through == holds_one {
            return Err(format!("{}: others get through: {through}", strategy.slug));
        }
    }
    Ok(())
}

/// Another is faster, between the read and the write: the version has changed, so it reads anew, and sells.
pub(crate) async fn who_finds_another_version_tries_again(servers: &Servers) -> Outcome {
    for slug in ["version-cas", "version-cas-paced"] {
        let site = servers.site().await;
        site.put_stock(STOCK).await;
        let (slow, _, between) = stopped(&site.ctxs[0], slug, Job::new(site.id, NOW, LONG)).await?;
        let (fast, _) = start(&site.ctxs[1], slug, Job::new(site.id, NOW, LONG));
        fast.await.map_err(text)?.map_err(text)?;
        between.go_on();
        let sold = slow.await.map_err(text)?.map_err(text)?;
        let left = site.stock(Store::MySql).await;
        if (sold.retries, left) != (1, STOCK - 2) {
            return Err(format!("{slug}: {} retries, {left} left", sold.retries));
        }
    }
    Ok(())
}

/// Pieces in buckets are counted, are left alone by who sells from the row, and are back after a reset.
pub(crate) async fn pieces_in_buckets_are_never_lost(servers: &Servers) -> Outcome {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let row = async || -> Result<i64, String> {
        let mut outsider = MySqlConnection::connect(&servers.mysql())
            .await
            .map_err(text)?;
        let row = sqlx::query_scalar("SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?")
            .bind(site.id);
        row.fetch_one(&mut outsider).await.map_err(text)
    };
    for slug in ["single-update-buckets", "none"] {
        start(&site.ctxs[0], slug, Job::new(site.id, NOW, LONG))
            .0
            .await
            .map_err(text)?
            .map_err(text)?;
    }
    let (in_row, on_shelf) = (row().await?, site.stock(Store::MySql).await);
    if in_row >= STOCK - 2 || on_shelf != STOCK - 2 {
        return Err(format!(
            "{in_row} in the row, {on_shelf} on the shelf, after two of {STOCK} were sold"
        ));
    }
    shelf::reset(&site.ctxs[0], site.id, STOCK, None)
        .await
        .map_err(text)?;
    let (in_row, on_shelf) = (row().await?, site.stock(Store::MySql).await);
    if (in_row, on_shelf) == (STOCK, STOCK) {
        return Ok(());
    }
    Err(format!(
        "after a reset to {STOCK}: {in_row} in the row, {on_shelf} on the shelf"
    ))
}

/// The connection of the holder is killed under it: another gets in at once, and the late holder sells nothing, since its
/// write goes the same way as its lock.
pub(crate) async fn a_named_lock_goes_with_its_connection(servers: &Servers) -> Outcome {
    let site = servers.site().await;
    site.put_stock(STOCK).await;
    let (late, job, between) = stopped(
        &site.ctxs[0],
        "mysql-named-lock",
        Job::new(site.id, NOW, LONG),
    )
    .await?;
    let mut outsider = MySqlConnection::connect(&servers.mysql())
        .await
        .map_err(text)?;
    let holder =
        sqlx::query_scalar("SELECT CAST(IS_USED_LOCK(CONCAT(DATABASE(), '.', ?)) AS SIGNED)");
    let holder: i64 = holder
        .bind(job.redis_name("stock"))
        .fetch_one(&mut outsider)
        .await
        .map_err(text)?;
    outsider
        .execute(format!("KILL {holder}").as_str())
        .await
        .map_err(text)?;
    let (next, _) = start(
        &site.ctxs[1],
        "mysql-named-lock",
        Job::new(site.id, NOW, LONG),
    );
    next.await.map_err(text)?.map_err(text)?;
    between.go_on();
    let late = late.await.map_err(text)?;
    match (late, STOCK - site.stock(Store::MySql).await) {
        (Err(Error::Unknown { .. }), 1) => Ok(()),
        other => Err(format!(
            "the late holder and what left the shelf: {other:?}"
        )),
    }
}

/// §4: a person who looks into `tb_lock` sees who holds the lock.
pub(crate) async fn the_row_of_a_table_lock_says_who_holds_it(servers: &Servers) -> Outcome {
    for (slug, holds) in [("table-lock", 1), ("table-lock-lease", 2)] {
        let site = servers.site().await;
        site.put_stock(STOCK).await;
        let asked = Job::new(site.id, NOW, LONG).asked(None, Some("小明".into()));
        let (holder, _, between) = stopped(&site.ctxs[0], slug, asked).await?;
        let mut outsider = MySqlConnection::connect(&servers.mysql())
            .await
            .map_err(text)?;
        let select = "SELECT class_name, method_name, server_name, `desc`, CAST(holds AS SIGNED) FROM tb_lock \
                      WHERE `desc` LIKE ?";
        let row: (String, String, String, String, i64) = sqlx::query_as(select)
            .bind(format!("商品 {} %", site.id))
            .fetch_one(&mut outsider)
            .await
            .map_err(text)?;
        between.go_on();
        holder.await.map_err(text)?.map_err(text)?;
        let class = format!("oversell::stock::{}", slug.replace('-', "_"));
        let said = format!("商品 {} 减库存 小明", site.id);
        if row
            != (
                class,
                "deduct".into(),
                site.ctxs[0].instance.clone(),
                said,
                holds,
            )
        {
            return Err(format!("{slug}: {row:?}"));
        }
    }
    Ok(())
}

/// §1.2 and §4 as the course has them, with rows, one of them a lock that is held.
const OF_THE_COURSE: [&str; 4] = [
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

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Some of the migrations.
fn only(versions: &[i64]) -> Migrator {
    let some = MIGRATIONS
        .iter()
        .filter(|m| versions.contains(&m.version))
        .cloned()
        .collect();
    Migrator {
        migrations: some,
        ..Migrator::DEFAULT
    }
}

/// A database of its own, and an instance that works in it.
async fn database(servers: &Servers, name: &str) -> Result<(MySqlConnection, Arc<Ctx>), String> {
    let mut outsider = MySqlConnection::connect(&servers.mysql())
        .await
        .map_err(text)?;
    outsider
        .execute(format!("CREATE DATABASE {name}").as_str())
        .await
        .map_err(text)?;
    outsider
        .execute(format!("USE {name}").as_str())
        .await
        .map_err(text)?;
    let url = servers.mysql();
    let url = format!(
        "{}/{name}",
        url.rsplit_once('/').ok_or("no database in the address")?.0
    );
    Ok((
        outsider,
        servers.with(|config| config.mysql.url = url.as_str().into()),
    ))
}

pub(crate) async fn a_database_of_the_course_is_taken_over_with_its_rows(
    servers: &Servers,
) -> Outcome {
    let (mut outsider, ctx) = database(servers, "of_the_course").await?;
    for statement in OF_THE_COURSE {
        outsider.execute(statement).await.map_err(text)?;
    }
    // What the test rests on: without the step aside the tables are in the way.
    if only(&[1, 2, 4]).run(&mut outsider).await.is_ok() {
        return Err("the course's tables were in nobody's way".into());
    }
    outsider
        .execute("DROP TABLE _sqlx_migrations")
        .await
        .map_err(text)?;
    MIGRATIONS.run(&mut outsider).await.map_err(text)?;
    // Again, as the next start does.
    MIGRATIONS.run(&mut outsider).await.map_err(text)?;
    let counts = [
        shelf::count(&ctx, Store::MySql, 1).await,
        shelf::count(&ctx, Store::MySql, 2).await,
    ];
    if !matches!(counts, [Ok(4870), Ok(7)]) {
        return Err(format!("the stock of the course: {counts:?}"));
    }
    // The lock that is held in it is held; when it is deleted, the rest is as anywhere.
    let blocked = start(&ctx, "table-lock", Job::new(1, NOW, PATIENCE))
        .0
        .await
        .map_err(text)?;
    if !matches!(blocked, Err(Error::NotHad { .. })) {
        return Err(format!("beside the lock of the course: {blocked:?}"));
    }
    outsider
        .execute("DELETE FROM tb_lock")
        .await
        .map_err(text)?;
    for slug in ["table-lock", "version-cas", "single-update-buckets"] {
        start(&ctx, slug, Job::new(1, NOW, LONG))
            .0
            .await
            .map_err(text)?
            .map_err(|e| format!("{slug}: {e}"))?;
    }
    match shelf::count(&ctx, Store::MySql, 1).await {
        Ok(4867) => Ok(()),
        other => Err(format!("after three were sold: {other:?}")),
    }
}

pub(crate) async fn a_database_of_an_earlier_version_goes_on(servers: &Servers) -> Outcome {
    let (mut outsider, ctx) = database(servers, "of_an_earlier_version").await?;
    only(&[1, 2]).run(&mut outsider).await.map_err(text)?;
    outsider
        .execute("UPDATE db_stock SET count = 77, version = 9, fence = 3")
        .await
        .map_err(text)?;
    MIGRATIONS.run(&mut outsider).await.map_err(text)?;
    start(&ctx, "single-update-buckets", Job::new(1, NOW, LONG))
        .0
        .await
        .map_err(text)?
        .map_err(text)?;
    let row: (i64, u64) = sqlx::query_as("SELECT version, fence FROM db_stock")
        .fetch_one(&mut outsider)
        .await
        .map_err(text)?;
    match (row, shelf::count(&ctx, Store::MySql, 1).await) {
        ((10, 3), Ok(76)) => Ok(()),
        other => Err(format!("version, fence and count: {other:?}")),
    }
}
