//! Locks in Redis, in the format that Redisson has made common: a Java process and ours exclude each other.
//!
//! [`RedisClient`] is one per process; [`RedisLock`] is one per contender.

use crate::{Guard, Lock, LockError, Process};
use ::redis::aio::ConnectionManager;
use std::time::Duration;

/// How to reach Redis, and how long things take.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// This process: owners are named after it.
    pub process: Process,
    /// `redis://host:port`.
    pub url: String,
    /// Before every key and channel; empty for none.
    pub prefix: String,
    /// The lease, renewed every third while the holder lives.
    pub lease: Duration,
    /// An unanswered command is given up after this.
    pub timeout: Duration,
}

/// x
#[derive(Debug, Clone)]
pub struct RedisClient;

impl RedisClient {
    /// Connects when first used.
    ///
    /// # Errors
    ///
    /// bad url
    pub fn new(_options: RedisOptions) -> Result<Self, LockError> {
        Ok(Self)
    }

    /// The connection for plain commands.
    #[must_use]
    pub fn connection(&self) -> ConnectionManager {
        unimplemented!()
    }

    /// A lock
    #[must_use]
    pub fn lock(&self, _name: &str) -> RedisLock {
        RedisLock
    }

    /// Ends all keepers
    pub async fn close(&self) {}
}

/// x
#[derive(Debug)]
pub struct RedisLock;

impl Lock for RedisLock {
    fn name(&self) -> &str {
        unimplemented!()
    }
    async fn acquire(&self, _wait: Duration) -> Result<Guard, LockError> {
        unimplemented!()
    }
}
