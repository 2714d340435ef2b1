//! The ceiling of `redis-lock`: one client that takes the lock, runs the section and gives the lock back, with nobody
//! else about. A lock lets one in at a time, so no number of clients can be faster than that, however they wait.

use super::direct::{failed, section};
use crate::failure::Failure;
use oversell_lock::{
    Lock, Process,
    mysql::pool::MySqlPool,
    redis::{RedisClient, RedisOptions},
};
use std::time::{Duration, Instant};

/// Keeps the keys apart from those of the instances.
const PREFIX: &str = "oversell-bench:";
const LEASE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(3);

/// One client of Redis and MySQL.
pub(super) struct Serial {
    redis: RedisClient,
    db: MySqlPool,
}

impl Serial {
    /// A client; connects when first used.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where an address is not one.
    pub(super) fn new(redis: &str, mysql: &str) -> Result<Self, Failure> {
        let options = RedisOptions {
            process: Process::new(),
            url: redis.into(),
            prefix: PREFIX.into(),
            lease: LEASE,
            timeout: TIMEOUT,
        };
        Ok(Self { redis: RedisClient::new(options).map_err(failed)?, db: MySqlPool::new(mysql, 1).map_err(failed)? })
    }

    /// Lock, section, unlock: how often in a second.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where Redis or MySQL does not answer.
    pub(super) async fn per_second(&self, loops: usize) -> Result<f64, Failure> {
        self.once().await?;
        let begun = Instant::now();
        for _ in 0..loops {
            self.once().await?;
        }
        Ok(loops as f64 / begun.elapsed().as_secs_f64())
    }

    async fn once(&self) -> Result<(), Failure> {
        let guard = self.redis.lock("lock").acquire(TIMEOUT).await.map_err(failed)?;
        let mut conn = self.db.conn(TIMEOUT).await.map_err(failed)?;
        section(&mut conn).await.map_err(failed)?;
        conn.done();
        guard.release().await.map_err(failed)
    }

    /// Closes the client.
    pub(super) async fn close(self) {
        self.redis.close().await;
    }
}
