//! §1.8 The optimistic lock of Redis: WATCH the key, and EXEC fails if another wrote it meanwhile.
//!
//! 1. `WATCH stock` and `GET stock`, sent together: Redis runs them in this order.
//! 2. `MULTI`, `SET stock` one less, `EXEC`.
//! 3. EXEC answers nil: another was faster. Pause for a random time and start anew, as long as it may wait.
//!
//! A watch belongs to its connection, so each request has one to itself: on a shared one, another's command would
//! end up inside our MULTI, and another's EXEC would drop our WATCH.
//!
//! What it survives: any number of instances, holders that die (nobody holds anything). **What breaks it**: a
//! Redis that loses its last second of writes; and under contention most attempts are wasted.
//!
//! Next: `redis_setnx.rs`, where one at a time gets in.

use super::{Deducted, Job, Pace, Promise, Server, Store, Strategy, Title, redis_key, retry::Backoff};
use crate::{ctx::Ctx, error::Error};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-watch",
    chapter: "1.8",
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: Pace::Course,
    title: Title { zh: "Redis 乐观锁：WATCH + MULTI", en: "The optimistic lock of Redis: WATCH and MULTI" },
    breaks: Title {
        zh: "不会断；但并发越大，重试越多", en: "nothing; but the more contention, the more is retried"
    },
    source: include_str!("redis_watch.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let key = redis_key::of(ctx, job.stock_id);
    // One connection for all attempts: no more contend at once than the pool has, and the others wait in its line.
    let mut conn = redis_key::watch_connection(ctx, job).await?;
    let mut backoff = Backoff::new(job, "key stock (WATCH)");
    loop {
        let read = redis::pipe().cmd("WATCH").arg(&key).ignore().get(&key).query_async(&mut conn).await?;
        let (count,): (Option<i64>,) = read;
        let count = count.ok_or(Error::NoProduct(job.stock_id))?;
        if count <= 0 {
            return Err(Error::SoldOut);
        }
        job.inside().await;
        let exec = redis::pipe().atomic().set(&key, count - 1).query_async(&mut conn).await;
        if redis_key::answered::<Option<()>>(exec)?.is_some() {
            return Ok(Deducted { remaining: Some(count - 1), fence: None, retries: backoff.retries() });
        }
        backoff.pause().await?;
    }
}
