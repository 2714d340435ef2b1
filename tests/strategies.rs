//! Every strategy of the registry keeps its promise, on three instances' worth of clients and on one, against real
//! servers; and the same check catches strategies that are broken on purpose.
//!
//! The races are forced: each job stays for a while between its read and its write.

use crate::support::{Servers, Site};
use futures::future::BoxFuture;
use oversell::{
    ctx::Ctx,
    error::Error,
    section::{Deducted, Job},
    stock::{self, Promise, Store, Strategy},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

const STOCK: i64 = 200;
const TASKS: usize = 12;
const EACH: usize = 4;
const HOLD: Duration = Duration::from_millis(2);
const WAIT: Duration = Duration::from_secs(60);

type Deduct = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Deducted, Error>>;

/// Runs `TASKS × EACH` jobs over `instances` clients: how many were sold, and how many pieces left the shelf.
async fn sell(
    site: &Site,
    store: Store,
    deduct: Deduct,
    instances: usize,
) -> Result<(i64, i64), String> {
    site.put_stock(STOCK).await;
    let mut tasks = Vec::new();
    for n in 0..TASKS {
        let (ctx, id) = (Arc::clone(&site.ctxs[n % instances]), site.id);
        tasks.push(tokio::spawn(async move {
            let mut sold = 0;
            for _ in 0..EACH {
                match deduct(&ctx, &Job::new(id, HOLD, WAIT)).await {
                    Ok(_) => sold += 1,
                    Err(error) => return Err(error.to_string()),
                }
            }
            Ok(sold)
        }));
    }
    let mut sold = 0;
    for task in tasks {
        sold += task.await.map_err(|e| e.to_string())??;
    }
    Ok((sold, STOCK - site.stock(store).await))
}

async fn exact(site: &Site, store: Store, deduct: Deduct, instances: usize) -> Result<(), String> {
    let (sold, gone) = sell(site, store, deduct, instances).await?;
    if sold == gone {
        Ok(())
    } else {
        Err(format!(
            "sold {sold} with {instances} instances, and {gone} left the shelf"
        ))
    }
}

async fn oversells(
    site: &Site,
    store: Store,
    deduct: Deduct,
    instances: usize,
) -> Result<(), String> {
    match exact(site, store, deduct, instances).await {
        Err(text) if text.starts_with("sold ") => Ok(()),
        Err(text) => Err(text),
        Ok(()) => Err(format!("did not oversell with {instances} instances")),
    }
}

/// What the promise says of one instance and of three.
pub(crate) async fn keeps_its_promise(
    servers: &Servers,
    strategy: &Strategy,
) -> Result<(), String> {
    let site = servers.site().await;
    let (store, deduct) = (strategy.store, strategy.deduct);
    match strategy.promise {
        Promise::Safe | Promise::Lease => exact(&site, store, deduct, 3).await,
        Promise::OneProcess => {
            exact(&site, store, deduct, 1).await?;
            oversells(&site, store, deduct, 3).await
        }
        Promise::Unsafe => {
            oversells(&site, store, deduct, 1).await?;
            oversells(&site, store, deduct, 3).await
        }
    }
}

/// The stock runs out in the middle: no strategy that is exact sells a piece too many, and the rest hear "sold out".
pub(crate) async fn sells_no_more_than_there_is(
    servers: &Servers,
    strategy: &Strategy,
) -> Result<(), String> {
    no_more_than_there_is(servers, strategy.store, strategy.deduct).await
}

async fn no_more_than_there_is(
    servers: &Servers,
    store: Store,
    deduct: Deduct,
) -> Result<(), String> {
    const FEW: i64 = 5;
    let site = servers.site().await;
    site.put_stock(FEW).await;
    let (mut sold, mut sold_out) = (0, 0);
    let jobs = (0..15).map(|n| {
        let (ctx, id) = (Arc::clone(&site.ctxs[n % 3]), site.id);
        async move { deduct(&ctx, &Job::new(id, Duration::ZERO, WAIT)).await }
    });
    for outcome in futures::future::join_all(jobs).await {
        match outcome {
            Ok(_) => sold += 1,
            Err(Error::SoldOut) => sold_out += 1,
            Err(other) => return Err(other.to_string()),
        }
    }
    let left = site.stock(store).await;
    if (sold, sold_out, left) == (FEW, 10, 0) {
        Ok(())
    } else {
        Err(format!(
            "of {FEW} pieces {sold} were sold, {sold_out} were told sold out, {left} are left"
        ))
    }
}

/// Strategies that are broken on purpose, and sell too much on three instances.
pub(crate) const TWINS: [(&str, Store, Deduct); 4] = [
    (
        "version_cas_that_ignores_the_version_is_caught",
        Store::MySql,
        |ctx, job| Box::pin(cas_without_version(ctx, job)),
    ),
    (
        "a_named_lock_whose_answer_is_ignored_is_caught",
        Store::MySql,
        |ctx, job| Box::pin(named_lock_unseen(ctx, job)),
    ),
    (
        "buckets_that_are_filled_without_a_row_lock_are_caught",
        Store::MySql,
        |ctx, job| Box::pin(fill_and_take(ctx, job)),
    ),
    ("redis_without_watch_is_caught", Store::Redis, |ctx, job| {
        Box::pin(get_then_set(ctx, job))
    }),
];

pub(crate) async fn is_caught(
    servers: &Servers,
    store: Store,
    deduct: Deduct,
) -> Result<(), String> {
    oversells(&servers.site().await, store, deduct, 3).await
}

/// The twin of `version-cas` that forgets to compare the version.
async fn cas_without_version(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let (count,): (i64,) =
        sqlx::query_as("SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?")
            .bind(job.request.stock_id)
            .fetch_one(&mut *conn)
            .await?;
    job.inside().await;
    sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - 1)
        .bind(job.request.stock_id)
        .execute(&mut *conn)
        .await?;
    conn.done();
    Ok(Deducted::left(count - 1))
}

/// The twin of `mysql-named-lock` that asks for the lock and does not look whether it has it.
async fn named_lock_unseen(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let mut conn = ctx.mysql(job.wait_left()).await?;
    sqlx::query("SELECT GET_LOCK('twin', 0)")
        .execute(&mut *conn)
        .await?;
    let sold = cas_without_version(ctx, job).await;
    sqlx::query("SELECT RELEASE_LOCK('twin')")
        .execute(&mut *conn)
        .await?;
    conn.done();
    sold
}

/// The twin of `single-update-buckets` that moves pieces without the lock of the row that they come from.
async fn fill_and_take(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    const LOT: i64 = 3;
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let take = "UPDATE db_stock_bucket SET count = count - 1 WHERE stock_id = ? AND bucket = 0 AND count > 0";
    if sqlx::query(take)
        .bind(job.request.stock_id)
        .execute(&mut *conn)
        .await?
        .rows_affected()
        == 0
    {
        let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?";
        let count: i64 = sqlx::query_scalar(select)
            .bind(job.request.stock_id)
            .fetch_one(&mut *conn)
            .await?;
        job.inside().await;
        let update = sqlx::query("UPDATE db_stock SET count = ? WHERE id = ?")
            .bind(count - LOT)
            .bind(job.request.stock_id);
        update.execute(&mut *conn).await?;
        let fill = "INSERT INTO db_stock_bucket (stock_id, bucket, count) VALUES (?, 0, ?) \
                    ON DUPLICATE KEY UPDATE count = count + VALUES(count)";
        sqlx::query(fill)
            .bind(job.request.stock_id)
            .bind(LOT - 1)
            .execute(&mut *conn)
            .await?;
    }
    conn.done();
    Ok(Deducted::default())
}

/// The twin of `redis-watch` that reads and writes without WATCH.
async fn get_then_set(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let key = format!("{}{}", ctx.config.redis.prefix, job.redis_name("stock"));
    let mut redis = ctx.redis.connection();
    let count: i64 = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
    job.inside().await;
    redis::cmd("SET")
        .arg(&key)
        .arg(count - 1)
        .exec_async(&mut redis)
        .await?;
    Ok(Deducted::left(count - 1))
}

/// The twin of the merged strategies that tells every request of a group that it has a piece, though there were fewer.
pub(crate) async fn a_merge_that_sells_to_all_who_wait_is_caught(
    servers: &Servers,
) -> Result<(), String> {
    for (store, deduct) in [
        (
            Store::Redis,
            (|ctx, job| Box::pin(careless_merge(ctx, job, Store::Redis))) as Deduct,
        ),
        (Store::MySql, |ctx, job| {
            Box::pin(careless_merge(ctx, job, Store::MySql))
        }),
    ] {
        match no_more_than_there_is(servers, store, deduct).await {
            Err(text) if text.starts_with("of ") => {}
            other => return Err(format!("a merge that sells to all in {store:?}: {other:?}")),
        }
    }
    Ok(())
}

/// How many wait at the same time, in this process.
#[derive(Default)]
struct Crowd(AtomicI64, tokio::sync::Mutex<()>);

async fn careless_merge(ctx: &Ctx, job: &Job, store: Store) -> Result<Deducted, Error> {
    let crowd = ctx.local.of::<Crowd>();
    crowd.0.fetch_add(1, Ordering::Relaxed);
    let _turn = crowd.1.lock().await;
    let together = crowd.0.swap(0, Ordering::Relaxed);
    if store == Store::Redis {
        let key = format!("{}{}", ctx.config.redis.prefix, job.redis_name("stock"));
        let mut redis = ctx.redis.connection();
        let count: i64 = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
        redis::cmd("DECRBY")
            .arg(&key)
            .arg(together.min(count))
            .exec_async(&mut redis)
            .await?;
    } else {
        let mut conn = ctx.mysql(job.wait_left()).await?;
        sqlx::query("UPDATE db_stock SET count = count - LEAST(count, ?) WHERE id = ?")
            .bind(together)
            .bind(job.request.stock_id)
            .execute(&mut *conn)
            .await?;
        conn.done();
    }
    Ok(Deducted::default())
}

/// §1.8 in one instance: of concurrent requests one is faster than the others, which try again. The twin merges
/// them, and has nothing to retry.
pub(crate) async fn waiters_for_redis_watch_retry_the_more_the_more_there_are(
    servers: &Servers,
) -> Result<(), String> {
    let [few, many] = [
        retries(servers, "redis-watch", 10).await?,
        retries(servers, "redis-watch", 100).await?,
    ];
    let merged = retries(servers, "redis-watch-merged", 100).await?;
    if 0.0 < few && few < many && merged == 0.0 {
        Ok(())
    } else {
        Err(format!(
            "retries for each piece: {few} with 10 at once, {many} with 100, {merged} where they are merged"
        ))
    }
}

/// The retries for each piece, where so many buy five each.
async fn retries(servers: &Servers, slug: &str, at_once: usize) -> Result<f64, String> {
    let sales = sales(servers, slug, at_once, 5).await?;
    let retries: u32 = sales.iter().map(|sold| sold.retries).sum();
    Ok(f64::from(retries) / sales.len() as f64)
}

/// What so many buyers in one instance were answered, each of which buys so many pieces one after the other.
async fn sales(
    servers: &Servers,
    slug: &str,
    at_once: usize,
    each: usize,
) -> Result<Vec<Deducted>, String> {
    let site = servers.site().await;
    site.put_stock((at_once * each) as i64).await;
    let deduct = stock::find(slug).ok_or("no such strategy")?.deduct;
    let buyers = (0..at_once).map(|_| {
        let (ctx, id) = (Arc::clone(&site.ctxs[0]), site.id);
        tokio::spawn(async move {
            let mut sales = Vec::new();
            for _ in 0..each {
                let job = Job::new(id, Duration::ZERO, WAIT);
                sales.push(deduct(&ctx, &job).await.map_err(|e| e.to_string())?);
            }
            Ok::<_, String>(sales)
        })
    });
    let mut all = Vec::new();
    for buyer in buyers.collect::<Vec<_>>() {
        all.extend(buyer.await.map_err(|e| e.to_string())??);
    }
    Ok(all)
}

/// Every strategy whose promise holds on three instances.
pub(crate) fn exact_ones() -> impl Iterator<Item = &'static Strategy> {
    stock::ALL
        .iter()
        .filter(|s| matches!(s.promise, Promise::Safe | Promise::Lease))
}
