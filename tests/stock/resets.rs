//! What a reset clears: everything that a strategy or a lesson writes; and what it needs for that.

use crate::support::{
    self,
    http::{answered, check, put_stock, status},
    *,
};
use futures::future::BoxFuture;
use oversell::{
    classroom::{self, demo_layer, demo1, demo2, zk_atomic, zk_double_barrier},
    ctx::Ctx,
    error::Error,
    lab::{Lab, Options, Part},
    redis_at::redis_at,
    section::Job,
    shelf,
    stock::{self, Store},
};
use oversell_lock::Lock;
use redis::AsyncCommands;
use reqwest::StatusCode;
use std::{num::NonZeroU32, sync::Arc};
use tokio::task::JoinHandle;

type Lesson = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<(), Error>>;

const STOCK: i64 = 100;
const MINUTE: Duration = Duration::from_secs(60);

macro_rules! lessons {
    ($($name:literal: |$ctx:ident, $job:ident| $call:expr),* $(,)?) => {
        &[$(($name, |$ctx, $job| Box::pin(async move { $call.await.map(drop) }))),*]
    };
}

const LESSONS: &[(&str, Lesson)] = lessons![
    "demo1": |ctx, job| demo1::visit(ctx, job),
    "demo2": |ctx, job| demo2::visit(ctx, job, demo2::Id::Thread),
    "demo3": |ctx, job| under_the_layer(ctx, job),
    "zk atomic": |ctx, job| zk_atomic::change(ctx, job, zk_atomic::Change::Add(1)),
    "zk double barrier": |ctx, job| zk_double_barrier::enter(ctx, job, NonZeroU32::MIN),
];

/// What the layer does around demo3.
async fn under_the_layer(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let guard = demo_layer::lock(ctx, job, demo_layer::BY_ROUTE)
        .acquire(job.wait_left())
        .await?;
    job.inside().await;
    Ok(guard.release().await?)
}

/// A product of its own for each, somebody inside, and a reset: nothing of the product is left but its stock. A strategy
/// without names has nothing there even before.
#[apply(test!)]
async fn a_reset_clears_all_that_strategies_and_lessons_write(servers: &Servers) -> Result<()> {
    for strategy in stock::ALL.iter() {
        let (site, slug) = (servers.site().await, strategy.slug);
        let held = hold(&site, slug, move |ctx, job| async move {
            (strategy.deduct)(&ctx, &job).await.map(drop)
        })
        .await?;
        if strategy.names.is_empty() {
            // It may hold the row, which is no name.
            let written = left(&site).await?;
            ensure!(
                written.is_empty(),
                "{slug} has no names, and writes {written:?}"
            );
        } else {
            writes(&site, slug).await?;
            cleared(&site, slug).await?;
        }
        held.abort();
    }
    for (name, lesson) in LESSONS {
        a_lesson_is_cleared(servers, name, move |ctx, job| async move {
            lesson(&ctx, &job).await
        })
        .await?;
    }
    // Those with a wait of their own wait for others, and one only deletes: they leave nothing.
    let writing = classroom::windows()
        .filter(|window| window.wait.is_none() && window.path != "/test/zk/barrier/remove");
    for window in writing {
        a_lesson_is_cleared(servers, window.path, move |ctx, job| async move {
            (window.visit)(&ctx, &job).await.map(drop)
        })
        .await?;
    }
    Ok(())
}

async fn a_lesson_is_cleared<F, R>(servers: &Servers, name: &str, visit: F) -> Result<()>
where
    F: FnOnce(Arc<Ctx>, Arc<Job>) -> R,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    let site = servers.site().await;
    let held = hold(&site, name, visit).await?;
    writes(&site, name).await?;
    // These two write once more when they are inside. What came after the reset would be left.
    until(&format!("{name} has written all"), || async {
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

/// The twin: where a name is left out, since only another strategy's are cleared, that is seen.
#[apply(test!)]
async fn a_name_that_a_reset_leaves_out_is_seen(servers: &Servers) -> Result<()> {
    for (slug, other) in [
        ("redis-write", "redis-lock"),
        ("zk-multi", "zk-lock"),
        ("table-lock", "none"),
    ] {
        let site = servers.site().await;
        let strategy = stock::find(slug).context("no such strategy")?;
        let held = hold(&site, slug, move |ctx, job| async move {
            (strategy.deduct)(&ctx, &job).await.map(drop)
        })
        .await?;
        writes(&site, slug).await?;
        let not_cleared = shelf::reset(
            &site.ctxs[1],
            site.id,
            STOCK,
            stock::find(other).map(shelf::Scope::from),
        )
        .await;
        not_cleared?;
        ensure!(
            !left(&site).await?.is_empty(),
            "a reset of {other} clears what {slug} has written, or nobody sees that it does not"
        );
        held.abort();
    }
    Ok(())
}

/// Somebody inside, for a minute; who answers at once may have answered.
async fn hold<F, R>(site: &Site, what: &str, run: F) -> Result<JoinHandle<Result<(), Error>>>
where
    F: FnOnce(Arc<Ctx>, Arc<Job>) -> R,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    site.put_stock(STOCK).await;
    for ctx in &site.ctxs {
        while ctx.zk.session().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let job = Arc::new(Job::new(site.id, MINUTE, LONG));
    let running = tokio::spawn(run(Arc::clone(&site.ctxs[0]), Arc::clone(&job)));
    let said = format!("{what} is inside");
    let inside = until(&said, || async {
        Ok(job.seen.has_entered() || running.is_finished())
    });
    // A merged one stays before it goes in.
    if what.ends_with("-merged") {
        drop(tokio::time::timeout(Duration::from_secs(2), inside).await);
    } else {
        inside.await?;
    }
    Ok(running)
}

/// Who is inside need not have written yet.
async fn writes(site: &Site, what: &str) -> Result<()> {
    until(&format!("{what} writes something"), || async {
        Ok(!left(site).await?.is_empty())
    })
    .await
}

async fn cleared(site: &Site, what: &str) -> Result<()> {
    let not_cleared = shelf::reset(&site.ctxs[1], site.id, STOCK, None).await?;
    let left = left(site).await?;
    ensure!(
        not_cleared.is_empty() && left.is_empty(),
        "{what}: a reset leaves {left:?}, and says of {not_cleared:?} that it was not there"
    );
    shelf::remove(&site.ctxs[1], site.id, None).await?;
    match shelf::read(&site.ctxs[1], site.id).await {
        Err(Error::NoProduct(_)) => Ok(()),
        other => bail!("{what}: a product that was removed is {other:?}"),
    }
}

/// What the servers have of the product besides its stock.
async fn left(site: &Site) -> Result<Vec<String>> {
    let (ctx, id) = (&site.ctxs[1], site.id);
    let mut redis = ctx.redis.connection();
    let keys: Vec<String> = redis.keys(format!("*:{id}*")).await?;
    let mut left: Vec<String> = keys
        .into_iter()
        .filter(|key| {
            (key.ends_with(&format!(":{id}")) || key.contains(&format!(":{id}}}")))
                && *key != format!("stock:{id}")
        })
        .collect();
    let zk = ctx.zk.session()?;
    for path in ["/distributed", "/curator", "/curator/multi", "/locks"] {
        let children = zk.list_children(path).await.unwrap_or_default();
        let of_it = children
            .iter()
            .filter(|child| child.ends_with(&format!("-{id}")));
        left.extend(of_it.map(|child| format!("{path}/{child}")));
    }
    let mut conn = ctx.db.conn(LONG).await?;
    let rows: Vec<String> =
        sqlx::query_scalar("SELECT lock_name FROM tb_lock WHERE lock_name LIKE ?")
            .bind(format!("%:{id}"))
            .fetch_all(&mut *conn)
            .await?;
    let fence: Option<u64> = sqlx::query_scalar("SELECT fence FROM db_stock WHERE id = ?")
        .bind(id)
        .fetch_optional(&mut *conn)
        .await?;
    conn.done();
    left.extend(rows);
    left.extend(
        fence
            .filter(|fence| *fence > 0)
            .map(|fence| format!("fence {fence}")),
    );
    Ok(left)
}

/// A reset needs the stores, a strategy's reset what that one uses; what else is not there is named.
#[apply(test!)]
async fn a_reset_needs_what_it_sets_and_names_what_it_could_not_clear() -> Result<()> {
    let without = vec![Part::ZooKeeper, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options {
        without,
        redis_ports: vec![0, 0],
        ..program()
    })
    .await?;
    let mut config = config(lab.addresses());
    config.redis.nodes = lab
        .addresses()
        .redis
        .iter()
        .map(|node| node.url.as_str().into())
        .collect();
    let ctx = Arc::new(Ctx::new(config)?);
    let site = support::shelf(&ctx).await;
    let reset = async |count, slug: Option<&str>| {
        let strategy = slug.map(|slug| stock::find(slug).expect("a strategy"));
        shelf::reset(&ctx, 1, count, strategy.map(shelf::Scope::from)).await
    };

    ensure!(
        reset(10, None).await? == ["zookeeper"],
        "zookeeper is not there, and that is not said"
    );
    ensure!(
        reset(11, Some("zk-lock")).await.is_err(),
        "zk-lock can do without zookeeper"
    );
    lab.kill("redis-2").await?;
    let mut missing = reset(12, None).await?;
    missing.sort_unstable();
    ensure!(
        missing == ["redis-2", "zookeeper"],
        "a node is dead, and that is not said"
    );
    ensure!(
        reset(13, Some("redis-redlock")).await? == ["redis-2"],
        "redlock's dead node is not named"
    );
    ensure!(
        (
            site.stock(Store::MySql).await,
            site.stock(Store::Redis).await,
        ) == (13, 12),
        "redlock sets the key of redis"
    );
    ensure!(
        reset(14, Some("redis-watch")).await?.is_empty(),
        "redis-watch has nothing but its key"
    );
    ensure!(
        (
            site.stock(Store::MySql).await,
            site.stock(Store::Redis).await,
        ) == (13, 14),
        "redis-watch sets the row"
    );
    lab.kill("redis").await?;
    ensure!(
        reset(15, None).await.is_err(),
        "the stock of redis was set though it is dead"
    );
    ensure!(
        reset(16, Some("redis-lock")).await.is_err(),
        "the lock of redis was cleared though it is dead"
    );
    ensure!(
        site.stock(Store::MySql).await == 13,
        "a reset that could not be done has set the row"
    );
    ensure!(
        reset(17, Some("single-update")).await?.is_empty(),
        "single-update needs redis"
    );
    ensure!(
        site.stock(Store::MySql).await == 17,
        "single-update's stock was not set"
    );
    ctx.close(LONG).await;
    lab.stop().await;
    Ok(())
}

/// Redis comes back empty under running instances, and one more starts: none of them puts stock there. The answer says
/// what to do, and then it goes on. A product that never was is another thing.
#[apply(test!)]
async fn no_instance_invents_stock_for_a_redis_that_has_lost_it() -> Result<()> {
    const SELL: [&str; 4] = [
        "redis-watch",
        "redis-watch-merged",
        "redis-script",
        "redis-setnx-lua",
    ];
    let mut lab = labs::whole().await?;
    let bases: Vec<_> = lab
        .addresses()
        .instances
        .iter()
        .map(|instance| instance.url.clone())
        .collect();
    let answers = async |base: &str, slug: &str, status: StatusCode| {
        answered(check(base, slug, 0, 1000), status).await
    };
    for slug in SELL {
        answers(&bases[0], slug, StatusCode::OK).await?;
    }
    // Also a Redis that keeps its data has none then: what it has answered is in its file.
    let mut redis = redis_at(&lab.addresses().redis[0].url).await?;
    redis::pipe()
        .cmd("CONFIG")
        .arg(&["SET", "appendfsync", "always"])
        .cmd("FLUSHALL")
        .exec_async(&mut redis)
        .await?;
    lab.kill("redis").await?;
    // They have seen it go: what they would do for one that comes, they do.
    let ready =
        async |base: &str| Ok(status(format!("{base}/health/ready")).await? == StatusCode::OK);
    until("it is seen that redis is dead", || async {
        Ok(!ready(&bases[0]).await?)
    })
    .await?;
    lab.restart("redis").await?;
    let third = lab.addresses().instances[2].name.clone();
    lab.kill(&third).await?;
    lab.restart(&third).await?;
    for base in &bases {
        until("it is seen that redis is back", || ready(base)).await?;
        for slug in SELL {
            let words = answers(base, slug, StatusCode::SERVICE_UNAVAILABLE).await?;
            ensure!(words.contains("PUT /stock?stock_id=1"), "{slug}: {words}");
            let never_was = format!("{}&stock_id=77", check(base, slug, 0, 1000));
            answered(never_was, StatusCode::NOT_FOUND).await?;
        }
    }
    put_stock(&bases[0], STOCK).await?;
    for slug in SELL {
        answers(&bases[1], slug, StatusCode::OK).await?;
    }
    lab.stop().await;
    Ok(())
}
