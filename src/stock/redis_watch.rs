//! §1.8 The optimistic lock of Redis: WATCH the key, and EXEC fails if another wrote it meanwhile.
//!
//! 1. `WATCH stock` and `GET stock`, sent together: Redis runs them in this order.
//! 2. `MULTI`, `SET stock` one less, `EXEC`.
//! 3. EXEC answers nil: another was faster. Pause for a random time and start anew, as long as it may wait.
//!
//! A watch belongs to its connection, so each transaction has one to itself: on a shared one, another's command would
//! end up inside our MULTI, and another's EXEC would drop our WATCH. The requests of one instance that wait at the same
//! time share one transaction (`watch_line.rs`); one that stays inside (`hold_ms`) has its own.
//!
//! What it survives: any number of instances, holders that die (nobody holds anything). **What breaks it**: a
//! Redis that loses its last second of writes; and under contention most attempts are wasted.
//!
//! Next: `watch_line.rs`; then `redis_setnx.rs`, where one at a time gets in.

use super::{Deducted, Job, Promise, Server, Store, Strategy, Title, redis_key, retry::Backoff, watch_line};
use crate::{ctx::Ctx, error::Error};
use deadpool_redis::Connection;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-watch",
    chapter: "1.8",
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    beyond: false,
    names: &[],
    title: Title { zh: "Redis 乐观锁：WATCH + MULTI", en: "The optimistic lock of Redis: WATCH and MULTI" },
    breaks: Title {
        zh: "不会断；但并发越大，重试越多", en: "nothing; but the more contention, the more is retried"
    },
    source: include_str!("redis_watch.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    if job.hold.is_zero() {
        return watch_line::deduct(ctx, job).await.inspect(|_| job.enter());
    }
    let key = redis_key::of(ctx, job.stock_id);
    let mut backoff = Backoff::new(job, "key stock (WATCH)");
    let mut conn = redis_key::watch_connection(ctx, job.wait_left()).await?;
    loop {
        let count = watched(&mut conn, &key, job.stock_id).await?;
        job.inside().await;
        if exec(&mut conn, &key, count - 1).await? {
            return Ok(Deducted { remaining: Some(count - 1), fence: None, retries: backoff.retries(), lock: None });
        }
        backoff.pause().await?;
    }
}

/// The count, which is watched from now on; at least one.
pub(super) async fn watched(conn: &mut Connection, key: &str, stock_id: i64) -> Result<i64, Error> {
    let read = redis::pipe().cmd("WATCH").arg(key).ignore().get(key).query_async(conn).await?;
    let (count,): (Option<i64>,) = read;
    let count = count.ok_or(Error::NoProduct(stock_id))?;
    if count > 0 { Ok(count) } else { Err(Error::SoldOut) }
}

/// Writes the count, unless another did since it was watched.
pub(super) async fn exec(conn: &mut Connection, key: &str, count: i64) -> Result<bool, Error> {
    let exec = redis::pipe().atomic().set(key, count).query_async(conn).await;
    Ok(redis_key::answered::<Option<()>>(exec)?.is_some())
}
