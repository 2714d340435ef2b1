//! What the tests of the read-write lock in Redis share: `rw_line.rs` tests its waiters, `rw_holds.rs` its keys, and
//! `programs.rs` that readers share and a writer is alone.

use crate::support::*;
use oversell_lock::redis::{RedisClient, RedisReadLock, RedisWriteLock};

pub(crate) fn reading(process: &RedisClient, name: &str) -> RedisReadLock {
    process.rw_lock(name).read()
}

pub(crate) fn writing(process: &RedisClient, name: &str) -> RedisWriteLock {
    process.rw_lock(name).write()
}

pub(crate) fn owner() -> Owner {
    Process::new().owner()
}

pub(crate) async fn ensure_still_taken(what: &str, lock: &impl Lock) -> Result {
    ensure_taken(what, lock.acquire(SHORT).await)
}

/// Waits until one of our processes listens to the lock's channel.
pub(crate) async fn listens(redis: &Redis, name: &str) -> Result {
    let channel = format!("redisson_rwlock:{{{name}}}");
    redis.until_heard_by(&channel, 1).await
}
