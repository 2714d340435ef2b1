//! Every strategy keeps its promise, on three instances and on one, against real servers; the same check refuses broken
//! strategies.
//!
//! The races are forced: each job waits between its read and its write.

use crate::support::*;
use futures::future::join_all;
use oversell::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job},
    stock::{self, Promise, Store, Strategy},
};
use std::sync::Arc;

const STOCK: i64 = 200;
const TASKS: usize = 12;
const EACH: usize = 4;
const HOLD: Duration = Duration::from_millis(2);
const WAIT: Duration = Duration::from_secs(60);

/// Runs `TASKS × EACH` jobs on `instances` clients; sold pieces equal missing pieces.
async fn ensure_exact(site: &Site, store: Store, deduct: Deduct, instances: usize) -> Result<()> {
    site.put_stock(STOCK).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|n| {
            let (ctx, id) = (Arc::clone(&site.ctxs[n % instances]), site.id);
            tokio::spawn(async move {
                for _ in 0..EACH {
                    deduct(&ctx, &Job::new(id, HOLD, WAIT)).await?;
                }
                anyhow::Ok(EACH as i64)
            })
        })
        .collect();
    let mut sold = 0;
    for task in tasks {
        sold += task.await??;
    }
    let gone = STOCK - site.stock(store).await;
    ensure!(sold == gone, "sold {sold} with {instances} instances, and {gone} left the shelf");
    Ok(())
}

async fn oversells(site: &Site, store: Store, deduct: Deduct, instances: usize) -> Result<()> {
    caught(ensure_exact(site, store, deduct, instances).await, "left the shelf")
}

fn by_slug(strategy: &'static Strategy) -> (&'static str, &'static Strategy) {
    (strategy.slug, strategy)
}

/// The promise for one and for three instances. Flaws of printed code show only by chance; their races show them.
#[apply(test!)]
#[over(stock::ALL.iter().filter(|strategy| !strategy.spec.rank.is_as_printed()).map(by_slug))]
async fn keeps_its_promise(servers: &Servers, strategy: &'static Strategy) -> Result<()> {
    let site = servers.site().await;
    let (store, deduct) = (strategy.spec.store, strategy.spec.deduct);
    match strategy.spec.promise {
        Promise::Safe | Promise::Lease => ensure_exact(&site, store, deduct, 3).await,
        Promise::OneProcess => {
            ensure_exact(&site, store, deduct, 1).await?;
            oversells(&site, store, deduct, 3).await
        }
        Promise::Unsafe => {
            oversells(&site, store, deduct, 1).await?;
            oversells(&site, store, deduct, 3).await
        }
    }
}

fn exact_strategies() -> impl Iterator<Item = &'static Strategy> {
    let is_exact = |promise| matches!(promise, Promise::Safe | Promise::Lease);
    stock::ALL.iter().filter(move |strategy| is_exact(strategy.spec.promise))
}

/// The stock runs out midway: no exact strategy oversells, and the rest get "sold out".
#[apply(test!)]
#[over(exact_strategies().map(by_slug))]
async fn sells_no_more_than_there_is(servers: &Servers, strategy: &'static Strategy) -> Result<()> {
    ensure_no_oversell(servers, strategy.spec.store, strategy.spec.deduct).await
}

async fn ensure_no_oversell(servers: &Servers, store: Store, deduct: Deduct) -> Result<()> {
    const FEW: i64 = 5;
    let site = servers.site().await;
    site.put_stock(FEW).await;
    let (mut sold, mut sold_out) = (0, 0);
    let jobs = (0..15).map(|n| {
        let (ctx, id) = (Arc::clone(&site.ctxs[n % 3]), site.id);
        async move { deduct(&ctx, &Job::new(id, Duration::ZERO, WAIT)).await }
    });
    for outcome in join_all(jobs).await {
        match outcome {
            Ok(_) => sold += 1,
            Err(Error::SoldOut) => sold_out += 1,
            Err(other) => return Err(other.into()),
        }
    }
    let left = site.stock(store).await;
    ensure!(
        (sold, sold_out, left) == (FEW, 10, 0),
        "of {FEW} pieces {sold} were sold, {sold_out} were told sold out, {left} are left"
    );
    Ok(())
}

/// Broken strategies, by what is missing. (`none` and others without a promise are the twins of those that read and
/// then write the row.)
const TWINS: [(&str, (Store, Deduct)); 2] = [
    ("single-update-buckets_without_a_row_lock", (Store::MySql, |ctx, job| Box::pin(fill_and_take(ctx, job)))),
    ("redis-watch_without_watch", (Store::Redis, |ctx, job| Box::pin(get_then_set(ctx, job)))),
];

#[apply(test!)]
#[over(TWINS)]
async fn a_broken_twin_is_caught(servers: &Servers, twin: (Store, Deduct)) -> Result<()> {
    let (store, deduct) = twin;
    oversells(&servers.site().await, store, deduct, 3).await
}

/// The twin ignores whether a piece is left.
#[apply(test!)]
async fn a_twin_that_sells_more_than_there_is_is_caught(servers: &Servers) -> Result<()> {
    let twin: Deduct = |ctx, job| Box::pin(get_then_set(ctx, job));
    let verdict = ensure_no_oversell(servers, Store::Redis, twin).await;
    caught(verdict, "were told sold out")
}

/// The twin of `single-update-buckets` moves pieces without locking their row.
async fn fill_and_take(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    const LOT: i64 = 3;
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let take = "UPDATE db_stock_bucket SET count = count - 1 WHERE stock_id = ? AND bucket = 0 AND count > 0";
    if sqlx::query(take).bind(job.request.stock_id).execute(&mut *conn).await?.rows_affected() == 0 {
        let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?";
        let count: i64 = sqlx::query_scalar(select).bind(job.request.stock_id).fetch_one(&mut *conn).await?;
        job.enter_and_stay().await;
        let update = sqlx::query("UPDATE db_stock SET count = ? WHERE id = ?").bind(count - LOT).bind(job.request.stock_id);
        update.execute(&mut *conn).await?;
        let fill = "INSERT INTO db_stock_bucket (stock_id, bucket, count) VALUES (?, 0, ?) \
                    ON DUPLICATE KEY UPDATE count = count + VALUES(count)";
        sqlx::query(fill).bind(job.request.stock_id).bind(LOT - 1).execute(&mut *conn).await?;
    }
    conn.done();
    Ok(Deduction::default())
}

/// The twin of `redis-watch` reads and writes without WATCH.
async fn get_then_set(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let key = format!("{}{}", ctx.config.redis.prefix, job.redis_name("stock"));
    let mut redis = ctx.redis.connection();
    let count: i64 = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
    job.enter_and_stay().await;
    redis::cmd("SET").arg(&key).arg(count - 1).exec_async(&mut redis).await?;
    Ok(Deduction::remaining(count - 1))
}
