//! What the tests of the read-write lock in Redis share: how a process waits for it is in `rw_line.rs`, what is written there
//! in `rw_holds.rs`. That readers read together and a writer writes alone, `programs.rs` finds out.

use super::support::*;
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

pub(crate) async fn is_taken(what: &str, lock: &impl Lock) -> Result {
    taken(what, lock.acquire(SHORT).await)
}

/// Waits until one process of ours waits for the lock's messages.
pub(crate) async fn listens(redis: &Redis, name: &str) -> Result {
    let channel = format!("redisson_rwlock:{{{name}}}");
    redis.until_heard_by(&channel, 1).await
}
