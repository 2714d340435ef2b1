//! Locks in Redis, in the format that Redisson has made common: a Java process and ours exclude each other.
//!
//! [`RedisClient`] is one per process; [`RedisLock`] is one per contender. Commands of one section: one script to take
//! the lock, one to give it back; where the next holder waits in the same process, one that does both.

mod client;
mod contend;
mod election;
mod fair;
mod fair_seat;
mod fenced;
mod hold;
mod latch;
mod lock;
mod permits;
mod place;
mod quorum;
mod rate_limiter;
mod read_write;
mod redlock;
mod script;
mod semaphore;
mod spin;
mod station;
mod subscription;
mod terms;
mod wakeups;

use crate::lease;

pub use crate::Lease;
pub use client::{RedisClient, RedisOptions};
pub use contend::RECHECK;
pub use fair::RedisFairLock;
pub use fenced::RedisFencedLock;
pub use latch::RedisLatch;
pub use lock::RedisLock;
pub use permits::Permits;
pub use place::{BATCH, BATCH_TIME, YIELD};
pub use rate_limiter::{RateLimiter, RateMode};
pub use read_write::{RedisReadLock, RedisRwLock, RedisWriteLock};
pub use redlock::Redlock;
pub use semaphore::{Permit, RedisSemaphore};
pub use spin::RedisSpinLock;
