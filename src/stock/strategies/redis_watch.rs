#![doc = include_str!("redis_watch.md")]

use crate::section::{RedisTap, redis_key};
use crate::stock::*;
use redis::{AsyncCommands, aio::ConnectionLike};

/// The mean pause after a conflict: the course's 50 ms.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.8",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 2_200,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Writes one less if the key has not changed since it was read; after a conflict it pauses and tries again, as long as the
/// job may wait.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let key = redis_key::stock_key(ctx, job.request.stock_id);
    // Nobody else has it as long as this lives.
    let exclusive = redis_key::watch_connection(ctx, job.wait_left()).await?;
    let mut conn = RedisTap::new(exclusive.clone(), job.observation.points(), None);
    let mut retries = 0;
    loop {
        let count = watch_count(ctx, &mut conn, &key, job.request.stock_id).await?;
        if count <= 0 {
            return Err(Error::SoldOut);
        }
        job.reach_with(Point::Watched, &key).await;
        let since = job.enter_and_stay().await;
        job.reach_with(Point::Read, count).await;
        if job.record_attempt(since, write_count(&mut conn, &key, count - 1).await?) {
            job.reach_with(Point::Written, count - 1).await;
            return Ok(Deduction { retries, ..Deduction::remaining(count - 1) });
        }
        job.reach(Point::Conflict).await;
        poll::pause_before_retry(job, RETRY_PAUSE, || format!("key {key} (WATCH)")).await?;
        retries += 1;
    }
}

/// Watches the key and reads its count.
pub(super) async fn watch_count(
    ctx: &Ctx,
    conn: &mut (impl ConnectionLike + Send + Sync),
    key: &str,
    stock_id: i64,
) -> Result<i64, Error> {
    redis::cmd("WATCH").arg(key).exec_async(conn).await?;
    let count: Option<i64> = conn.get(key).await?;
    match count {
        Some(count) => Ok(count),
        None => Err(redis_key::missing_key_error(ctx, stock_id).await),
    }
}

/// Writes the count in a transaction. Returns `false` if another has changed the key since it was watched.
pub(super) async fn write_count(conn: &mut (impl ConnectionLike + Send + Sync), key: &str, count: i64) -> Result<bool, Error> {
    let exec = redis::pipe().atomic().set(key, count).query_async(conn).await;
    Ok(redis_key::classify_write::<Option<()>>(exec, true)?.is_some())
}
