//! §1.8 The optimistic lock of Redis: WATCH the key, and EXEC fails if another wrote it meanwhile.
//!
//! 1. `WATCH stock`, then `GET stock`.
//! 2. `MULTI`, `SET stock` one less, `EXEC`.
//! 3. EXEC answers nil: another was faster. Pause for about 50 ms and start anew, as long as it may wait.
//!
//! A watch belongs to its connection, so each request has one to itself for all of its attempts: on a shared one, another's
//! command would end up inside our MULTI, and another's EXEC would drop our WATCH.
//!
//! What it survives: any number of instances, holders that die (nobody holds anything). **What breaks it**: a Redis that
//! loses its last second of writes; and under contention most attempts are wasted: see `retries` in the answers of 10 and of
//! 100 who ask at the same time.
//!
//! Points for a replay: `watched`, `read`, `conflict`, `written`.
//!
//! Next: `redis_watch_merged.rs`, where the instances contend and not the requests; then `redis_setnx.rs`.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Point, poll, redis_key},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use deadpool_redis::Connection;
use redis::AsyncCommands;
use std::time::Duration;

/// How long who was beaten pauses, on average.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-watch",
    chapter: "1.8",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 2_200,
    names: &[],
    title: Bilingual {
        zh: "Redis 乐观锁：WATCH + MULTI",
        en: "The optimistic lock of Redis: WATCH and MULTI",
    },
    breaks: Bilingual {
        zh: "不会断；但并发越大，重试越多",
        en: "nothing; but the more contention, the more is retried",
    },
    source: include_str!("redis_watch.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let key = redis_key::of(ctx, job.request.stock_id);
    let mut conn = redis_key::watch_connection(ctx, job.wait_left()).await?;
    let mut retries = 0;
    loop {
        let count = watched(ctx, &mut conn, &key, job.request.stock_id).await?;
        if count <= 0 {
            return Err(Error::SoldOut);
        }
        job.tell(Point::Watched, &key).await;
        let since = job.inside().await;
        job.tell(Point::Read, count).await;
        if job.tried(since, exec(&mut conn, &key, count - 1).await?) {
            job.tell(Point::Written, count - 1).await;
            return Ok(Deducted {
                remaining: Some(count - 1),
                fence: None,
                retries,
                lock: None,
            });
        }
        job.at(Point::Conflict).await;
        poll::pause(job, PAUSE, || format!("key {key} (WATCH)")).await?;
        retries += 1;
    }
}

/// The count, which is watched from now on.
pub(super) async fn watched(
    ctx: &Ctx,
    conn: &mut Connection,
    key: &str,
    stock_id: i64,
) -> Result<i64, Error> {
    redis::cmd("WATCH").arg(key).exec_async(conn).await?;
    let count: Option<i64> = conn.get(key).await?;
    match count {
        Some(count) => Ok(count),
        None => Err(redis_key::missing(ctx, stock_id).await),
    }
}

/// Writes the count, unless another did since it was watched.
pub(super) async fn exec(conn: &mut Connection, key: &str, count: i64) -> Result<bool, Error> {
    let exec = redis::pipe()
        .atomic()
        .set(key, count)
        .query_async(conn)
        .await;
    Ok(redis_key::answered::<Option<()>>(exec)?.is_some())
}
