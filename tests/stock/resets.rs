//! A reset clears everything that a strategy or lesson writes, and names what it needs for that.

use crate::support::{
    self,
    http::{body_with_status, check_url, put_stock, readiness, wait_until_ready},
    *,
};
use futures::{
    FutureExt, TryFutureExt,
    future::{BoxFuture, join_all},
};
use oversell::{
    classroom::{self, demo_layer, demo1, demo2, window::WindowAddress, zk_atomic, zk_double_barrier},
    ctx::Ctx,
    error::Error,
    section::{Job, Name},
    stock::{self, Store},
    stock_admin,
};
use oversell_lab::{
    clients::{proxy::Proxy, redis_at::redis_at},
    lab::{Lab, Options, Part},
};
use redis::AsyncCommands;
use reqwest::StatusCode;
use secrecy::ExposeSecret;
use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::task::JoinHandle;

type Lesson = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<(), Error>>;

trait Visit: for<'a> Fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<(), Error>> + Send + 'static {}
impl<F> Visit for F where F: for<'a> Fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<(), Error>> + Send + 'static {}

const STOCK: i64 = 100;
const MINUTE: Duration = Duration::from_secs(60);

macro_rules! lessons {
    ($($name:literal: |$ctx:ident, $job:ident| $call:expr),* $(,)?) => {
        &[$(($name, |$ctx, $job| Box::pin(async move { $call.await.map(drop) }))),*]
    };
}

const LESSONS: &[(&str, Lesson)] = lessons![
    "demo1": |ctx, job| demo1::visit(ctx, job),
    "demo2": |ctx, job| demo2::visit(ctx, job, demo2::LockValue::Thread),
    "demo3": |ctx, job| under_the_layer(ctx, job),
    "zk atomic": |ctx, job| zk_atomic::change(ctx, job, zk_atomic::Change::Add(1)),
    "zk double barrier": |ctx, job| zk_double_barrier::enter(ctx, job, NonZeroU32::MIN),
];

async fn under_the_layer(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let guard = demo_layer::lock(ctx, job, demo_layer::LOCK_NAME_BY_ROUTE).acquire(job.wait_left()).await?;
    job.enter_and_stay().await;
    Ok(guard.release().await?)
}

/// Each has its own product, with a visitor inside, and is reset: only the product's stock is left. A strategy without
/// names has nothing there even before.
#[apply(test!)]
async fn a_reset_clears_all_that_strategies_and_lessons_write(servers: &Servers) -> Result<()> {
    let (named, nameless): (Vec<_>, Vec<_>) = stock::ALL.iter().partition(|strategy| !strategy.spec.names.is_empty());
    for strategy in nameless {
        let site = servers.site().await;
        let held = hold(&site, strategy.slug, bought(strategy)).await?;
        // It may hold the row, which is no name.
        let written = left(&site).await?;
        let slug = strategy.slug;
        ensure!(written.is_empty(), "{slug} has no names, and writes {written:?}");
        held.abort();
    }
    for strategy in named {
        is_cleared(servers, strategy.slug, bought(strategy)).await?;
    }
    for (name, lesson) in LESSONS {
        is_cleared(servers, name, lesson).await?;
    }
    // Those that wait for others, and one that only deletes, leave nothing.
    let writing = classroom::windows().filter(|window| window.wait.is_none() && window.path != "/test/zk/barrier/remove");
    for window in writing {
        is_cleared(servers, window.path, visited(window)).await?;
    }
    Ok(())
}

fn bought(strategy: &'static stock::Strategy) -> impl Visit {
    |ctx, job| (strategy.spec.deduct)(ctx, job).map_ok(drop).boxed()
}

fn visited(window: &'static WindowAddress) -> impl Visit {
    |ctx, job| (window.visit)(ctx, job).map_ok(drop).boxed()
}

async fn is_cleared(servers: &Servers, name: &str, visit: impl Visit) -> Result<()> {
    let site = servers.site().await;
    let held = hold(&site, name, visit).await?;
    writes(&site, name).await?;
    // These two write again once inside, possibly after the reset.
    wait_until(&format!("{name} has written all"), || async {
        match name {
            "/test/zk/semaphore" => Ok(left(&site).await?.contains(&format!("log:{}", site.id))),
            "/test/zk/share/count" => Ok(held.is_finished()),
            _ => Ok(true),
        }
    })
    .await?;
    cleared(&site, name).await?;
    held.abort();
    Ok(())
}

/// The twin: a name that only another strategy's reset clears is found.
#[apply(test!)]
async fn a_name_missing_from_a_reset_is_found(servers: &Servers) -> Result<()> {
    for (slug, other) in [("redis-write", "redis-lock"), ("zk-multi", "zk-lock"), ("table-lock", "none")] {
        let site = servers.site().await;
        let strategy = stock::find(slug).context("no such strategy")?;
        let held = hold(&site, slug, bought(strategy)).await?;
        writes(&site, slug).await?;
        let other_scope = stock::find(other).map(stock_admin::ResetScope::from);
        stock_admin::reset(&site.ctxs[1], site.id, STOCK, other_scope).await?;
        ensure!(
            !left(&site).await?.is_empty(),
            "a reset of {other} clears what {slug} has written, or nobody sees that it does not"
        );
        held.abort();
    }
    Ok(())
}

/// Products that are new are made beside each other: none waits for a lock of another one's gap.
#[apply(test!)]
async fn new_products_are_made_beside_each_other(servers: &Servers) -> Result<()> {
    for _ in 0..5 {
        let sites = join_all((0..9).map(async |_| servers.site().await)).await;
        let made = join_all(sites.iter().map(|site| stock_admin::reset(&site.ctxs[0], site.id, STOCK, None))).await;
        for (site, made) in sites.iter().zip(made) {
            made?;
            stock_admin::remove(&site.ctxs[0], site.id, None).await?;
        }
    }
    Ok(())
}

/// A visitor inside for a minute, or one that was already answered.
async fn hold(site: &Site, what: &str, visit: impl Visit) -> Result<JoinHandle<Result<(), Error>>> {
    site.put_stock(STOCK).await;
    for ctx in &site.ctxs {
        while ctx.zk.session().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let job = Arc::new(Job::new(site.id, MINUTE, TEST_WAIT_LIMIT));
    let (ctx, asked) = (Arc::clone(&site.ctxs[0]), Arc::clone(&job));
    let running = tokio::spawn(async move { visit(&ctx, &asked).await });
    let said = format!("{what} is inside");
    let inside = wait_until(&said, || async { Ok(job.observation.has_entered() || running.is_finished()) });
    // The merged strategy waits before it enters.
    if what.ends_with("-merged") {
        drop(tokio::time::timeout(Duration::from_secs(2), inside).await);
    } else {
        inside.await?;
    }
    Ok(running)
}

/// A visitor inside may not have written yet.
async fn writes(site: &Site, what: &str) -> Result<()> {
    wait_until(&format!("{what} writes something"), || async { Ok(!left(site).await?.is_empty()) }).await
}

async fn cleared(site: &Site, what: &str) -> Result<()> {
    let not_cleared = stock_admin::reset(&site.ctxs[1], site.id, STOCK, None).await?;
    let left = left(site).await?;
    ensure!(
        not_cleared.is_empty() && left.is_empty(),
        "{what}: a reset leaves {left:?}, and says of {not_cleared:?} that it was not there"
    );
    stock_admin::remove(&site.ctxs[1], site.id, None).await?;
    match stock_admin::read(&site.ctxs[1], site.id).await {
        Err(Error::NoProduct(_)) => Ok(()),
        other => bail!("{what}: a product that was removed is {other:?}"),
    }
}

/// The servers' data of the product, without its stock.
async fn left(site: &Site) -> Result<Vec<String>> {
    let (ctx, id) = (&site.ctxs[1], site.id);
    let mut redis = ctx.redis.connection();
    let keys: Vec<String> = redis.keys(format!("*:{id}*")).await?;
    let mut left: Vec<String> = keys
        .into_iter()
        .filter(|key| (key.ends_with(&format!(":{id}")) || key.contains(&format!(":{id}}}"))) && *key != format!("stock:{id}"))
        .collect();
    let zk = ctx.zk.session()?;
    for path in ["/distributed", "/curator", "/curator/multi", "/locks"] {
        let children = zk.list_children(path).await.unwrap_or_default();
        let of_it = children.iter().filter(|child| child.ends_with(&format!("-{id}")));
        left.extend(of_it.map(|child| format!("{path}/{child}")));
    }
    let keys = labs::etcd_keys(&ctx.config.etcd.endpoints, "/distributed/").await?;
    left.extend(keys.into_iter().filter(|key| key.contains(&format!("-{id}/"))));
    let mut conn = ctx.db.conn(TEST_WAIT_LIMIT).await?;
    let rows: Vec<String> = sqlx::query_scalar("SELECT CAST(lock_name AS CHAR) FROM tb_lock WHERE lock_name LIKE ?")
        .bind(format!("%:{id}"))
        .fetch_all(&mut *conn)
        .await?;
    let fence: Option<u64> =
        sqlx::query_scalar("SELECT fence FROM db_stock WHERE id = ?").bind(id).fetch_optional(&mut *conn).await?;
    conn.done();
    left.extend(rows);
    left.extend(fence.filter(|fence| *fence > 0).map(|fence| format!("fence {fence}")));
    Ok(left)
}

/// A reset needs both stores; a strategy's reset needs what the strategy uses; it names other missing servers.
#[apply(test!)]
async fn a_reset_needs_its_stores_and_names_other_lost_servers() -> Result<()> {
    let without = vec![Part::ZooKeeper, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options { without, redis_ports: vec![0, 0], ..program() }).await?;
    let mut config = config(lab.addresses());
    config.redis.nodes = lab.addresses().redis.iter().map(|node| node.url.as_str().into()).collect();
    let ctx = Arc::new(Ctx::new(config)?);
    let site = support::shelf(&ctx).await;
    site.put_stock(9).await;
    // Per row: the killed server, the stock to set, one strategy or all; then the servers that a successful reset names
    // as missing, and the stock in MySQL and Redis.
    type Step<'a> = (&'a str, i64, &'a str, Option<&'a [&'a str]>, (i64, i64));
    let steps: [Step; 8] = [
        ("", 10, "", Some(&["zookeeper"]), (10, 10)),
        ("", 11, "zk-lock", None, (10, 10)),
        ("redis-2", 12, "", Some(&["redis-2", "zookeeper"]), (12, 12)),
        ("", 13, "redis-redlock", Some(&["redis-2"]), (13, 12)),
        ("", 14, "redis-watch", Some(&[]), (13, 14)),
        ("redis", 15, "", None, (13, 0)),
        ("", 16, "redis-lock", None, (13, 0)),
        ("", 17, "single-update", Some(&[]), (17, 0)),
    ];
    for (killed, count, slug, wanted, (mysql, redis)) in steps {
        if !killed.is_empty() {
            lab.kill(killed).await?;
        }
        let scope = stock::find(slug).map(stock_admin::ResetScope::from);
        let mut missing = stock_admin::reset(&ctx, 1, count, scope).await.ok();
        missing.iter_mut().for_each(|servers| servers.sort_unstable());
        ensure!(missing.as_deref() == wanted, "a reset of {slug:?} to {count} says that these are missing: {missing:?}");
        let left = site.stock(Store::MySql).await;
        ensure!(left == mysql, "a reset of {slug:?} to {count} sets the row to {left}");
        if redis > 0 {
            let left = site.stock(Store::Redis).await;
            ensure!(left == redis, "a reset of {slug:?} to {count} sets the key to {left}");
        }
    }
    ctx.close(TEST_WAIT_LIMIT).await;
    lab.stop().await;
    Ok(())
}

/// Redis returns empty under running instances, and another instance starts: none of them restores the stock. The
/// answer says what to do. A product that never existed is another case.
#[apply(test!)]
async fn no_instance_invents_stock_for_a_redis_that_has_lost_it() -> Result<()> {
    const SELL: [&str; 4] = ["redis-watch", "redis-watch-merged", "redis-script", "redis-setnx-lua"];
    let mut lab = labs::full_lab().await?;
    let bases: Vec<_> = lab.addresses().instances.iter().map(|instance| instance.url.clone()).collect();
    let answers =
        async |base: &str, slug: &str, status: StatusCode| body_with_status(check_url(base, slug, 0, 1000), status).await;
    for slug in SELL {
        answers(&bases[0], slug, StatusCode::OK).await?;
    }
    // The FLUSHALL must be in the append-only file, so that the restarted Redis is empty too.
    let mut redis = redis_at(&lab.addresses().redis[0].url).await?;
    redis::pipe().cmd("CONFIG").arg(&["SET", "appendfsync", "always"]).cmd("FLUSHALL").exec_async(&mut redis).await?;
    lab.kill("redis").await?;
    // The instances have seen Redis go, and would now restore the stock if they ever did.
    wait_until("it is seen that redis is dead", || async { Ok(!readiness(&bases[0]).await?.0) }).await?;
    lab.restart("redis").await?;
    let third = lab.addresses().instances[2].name.clone();
    lab.kill(&third).await?;
    lab.restart(&third).await?;
    for base in &bases {
        wait_until_ready(base).await?;
        for slug in SELL {
            let words = answers(base, slug, StatusCode::SERVICE_UNAVAILABLE).await?;
            ensure!(words.contains("PUT /stock?stock_id=1"), "{slug}: {words}");
            let never_was = format!("{}&stock_id=77", check_url(base, slug, 0, 1000));
            body_with_status(never_was, StatusCode::NOT_FOUND).await?;
        }
    }
    put_stock(&bases[0], STOCK).await?;
    for slug in SELL {
        answers(&bases[1], slug, StatusCode::OK).await?;
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A refusal by Redis before any change has changed nothing, and says why. The twins: a refusal after MySQL was
/// changed, and a missing answer, are unknown.
#[apply(test!)]
async fn only_a_reset_that_may_have_been_done_is_unknown(servers: &Servers) -> Result<()> {
    const REDIS_SCOPE: stock_admin::ResetScope<'static> =
        stock_admin::ResetScope { store: Some(Store::Redis), names: &[Name::Redis("lock")] };
    let site = servers.site().await;
    let url = site.ctxs[0].config.redis.url.expose_secret();
    let host = url.trim_start_matches("redis://").to_owned();
    for (user, may_not) in [("reader", "-@write"), ("no-del", "-del")] {
        let mut redis = redis_at(url).await?;
        let mut user = redis::cmd("ACL").arg("SETUSER").arg(user).to_owned();
        user.arg(&["reset", "on", ">x", "~*", "&*", "+@all", may_not]);
        user.exec_async(&mut redis).await?;
    }
    let executed = AtomicBool::new(false);
    let way = Proxy::filtered(&host, move |piece| {
        let exec = piece.bytes.windows(4).any(|part| part == b"EXEC");
        let executed = executed.fetch_or(exec && !piece.from_server, Ordering::SeqCst);
        !(executed && piece.from_server)
    })?;
    let [reader, no_del, mute] =
        [format!("redis://reader:x@{host}"), format!("redis://no-del:x@{host}"), format!("redis://{}", way.address())];
    // Per row: the refusal, or none if the outcome is unknown; then the stock of MySQL and Redis.
    for (url, scope, refused, mysql, redis) in [
        (&reader, None, Some("may not"), STOCK, STOCK),
        (&reader, Some(REDIS_SCOPE), Some("may not"), STOCK, STOCK),
        (&no_del, None, None, 1, STOCK),
        (&no_del, Some(REDIS_SCOPE), Some("may not"), STOCK, STOCK),
        (&mute, Some(REDIS_SCOPE), None, STOCK, 1),
    ] {
        site.put_stock(STOCK).await;
        let ctx = servers.with(|config| config.redis.url = url.as_str().into());
        let reset = stock_admin::reset(&ctx, site.id, 1, scope).await;
        ctx.close(TEST_WAIT_LIMIT).await;
        let as_it_should = match (&reset, refused) {
            (Err(Error::Refuses { why, .. }), Some(words)) => why.contains(words),
            (Err(Error::Unknown { .. }), None) => true,
            _ => false,
        };
        let left = (site.stock(Store::MySql).await, site.stock(Store::Redis).await);
        ensure!(as_it_should && left == (mysql, redis), "{url} {scope:?}: {reset:?}, and {left:?} are left");
    }
    Ok(())
}
