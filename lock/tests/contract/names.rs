//! An empty name, which a program has that forgot its own.

use super::{redis::redlock::redlock, support::*};
use oversell_lock::redis::{RedisClient, RedisOptions};
use std::num::NonZeroU32;

/// An empty name is refused by every object of every server: all services that forgot theirs would share it.
#[apply(test!)]
async fn an_empty_name_is_refused(all: &'static super::register::Engines) -> Result {
    let one = NonZeroU32::MIN;
    for prefix in ["", "shop:"] {
        let url = format!("redis://{}", all.redis.host());
        let redis = RedisClient::new(RedisOptions::new(url).prefix(prefix))?;
        for lock in [
            redis.lock("").boxed(),
            redis.fenced_lock("").boxed(),
            redis.fair_lock("").boxed(),
            redis.rw_lock("").read().boxed(),
            redis.rw_lock("").write().boxed(),
            redlock(std::slice::from_ref(&redis), "").boxed(),
        ] {
            ensure_invalid("a lock", lock.acquire(SOON).await)?;
        }
        for semaphore in [redis.semaphore(""), redis.semaphore("").without_lease()] {
            ensure_invalid("a semaphore", semaphore.try_set_permits(1).await)?;
            ensure_invalid("a permit", semaphore.initially(1).acquire(1, SOON).await)?;
        }
        ensure_invalid("a latch", redis.latch("").try_set_count(one).await)?;
        ensure_invalid("a count", redis.latch("").count_down().await)?;
        ensure_invalid("a wait", redis.latch("").wait(SOON).await)?;
        ensure_invalid("a rate", redis.rate_limiter("").try_set_rate(one, SOON).await)?;
        ensure_invalid("an admission", redis.rate_limiter("").acquire(one, SOON).await)?;
        // One letter is a name.
        pass(&redis.lock(&format!("{}-x", name()))).await?;
    }
    let pool = all.table.client().await;
    ensure_invalid("a row", pool.table_lock("").try_acquire().await)?;
    ensure_invalid("a row with a lease", pool.table_lease_lock("").try_acquire().await)?;
    let etcd = all.etcd.client().await;
    ensure_invalid("a prefix", etcd.lock("").try_acquire().await)?;
    let zk = all.zookeeper.client().await;
    ensure_invalid("a path", zk.client.lock("").try_acquire().await)?;
    ensure_invalid("a path of leases", zk.client.semaphore("", 1).try_acquire(1).await.map(drop))
}
