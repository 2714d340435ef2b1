//! What a program that uses locks imports at once: locks, clients, options and traits, but no modules, so that `redis` still
//! names the crate of that name.
//!
//! ```no_run
//! # #[cfg(feature = "redis")]
//! # mod example {
//! use oversell_lock::prelude::*;
//! use std::time::Duration;
//!
//! async fn work(client: &RedisClient) -> Result<(), Box<dyn std::error::Error>> {
//!     let ping = async |_| redis::cmd("PING").exec_async(&mut client.connection()).await;
//!     Ok(client.lock("door").with(Duration::from_secs(5), ping).await?)
//! }
//! # }
//! ```

#[cfg(any(feature = "mysql", feature = "redis"))]
pub use crate::Lease;
pub use crate::{DynLock, Fence, Guard, Holder, Lock, LockError, LockEvent, LockObserver, MultiLock, Owner, Process, WithError};

#[cfg(feature = "etcd")]
pub use crate::etcd::{EtcdClient, EtcdLock, EtcdOptions};
#[cfg(feature = "mysql")]
pub use crate::mysql::{MySqlOptions, TableLeaseLock, TableLock, TablePool};
#[cfg(feature = "redis")]
pub use crate::redis::{
    Permit, RateLimiter, RedisClient, RedisFairLock, RedisFencedLock, RedisLatch, RedisLock, RedisOptions, RedisReadLock,
    RedisRwLock, RedisSemaphore, RedisWriteLock, Redlock, RedlockClient, Replicas,
};
#[cfg(feature = "tower")]
pub use crate::tower::LockLayer;
#[cfg(feature = "zookeeper")]
pub use crate::zk::{
    ZkAtomicLong, ZkBarrier, ZkClient, ZkDoubleBarrier, ZkLock, ZkOptions, ZkReadLock, ZkRwLock, ZkSemaphore, ZkSemaphoreMutex,
    ZkSharedCount, ZkWriteLock,
};
