//! Locks in Redis, in Redisson's format: a Java process and ours exclude each other.
//!
//! [`RedisClient`] is one per process; [`RedisLock`] is one per contender. A section costs one script to acquire and
//! one to release, or one for both if the next holder waits in the same process.

mod acquire;
mod client;
mod cluster;
mod connection;
mod engine;
mod failure;
mod fair;
mod hold;
mod keys;
mod latch;
mod lock;
mod node;
mod options;
mod primary;
mod quorum;
mod rate_limiter;
mod read_write;
mod redlock;
mod replicas;
mod scripts;
mod semaphore;
mod servers;
mod shared_connection;
mod subscription;
mod wakeups;

pub use crate::Lease;
/// The crate `redis`, of the version whose connections [`RedisClient::over`] takes.
#[doc(no_inline)]
pub use ::redis;

pub use client::RedisClient;
pub use connection::Connection;
pub use engine::RECHECK_INTERVAL;
pub use fair::RedisFairLock;
pub use latch::RedisLatch;
pub use lock::{MAX_BATCH, MAX_BATCH_TIME, RedisFencedLock, RedisLock, YIELD_TIME};
pub use options::{RedisOptions, Replicas};
pub use rate_limiter::{MAX_ADMISSIONS_PER_CALL, RateLimiter};
pub use read_write::{RedisReadLock, RedisRwLock, RedisWriteLock};
pub use redlock::{Redlock, RedlockClient};
pub use scripts::script_text;
pub use semaphore::{Permit, RedisSemaphore};
