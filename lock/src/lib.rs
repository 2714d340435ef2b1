//! [Redisson]: guides::from_redisson
//! [rslock]: guides::from_rslock
//! [redis-py]: guides::from_redis_py
#![cfg_attr(any(not(doctest), all(feature = "axum", feature = "redis")), doc = include_str!("../README.md"))]
//!
//! ## What each lock survives
//!
//! Every lock passes one contract suite (`lock/tests`), and excludes and is excluded by real Java clients (`make interop`). The words
//! stand in [`guides::words`].
//!
//! | you want | take | it survives | what breaks it | a dead holder blocks the others | requests to take and to release | a waiter asks |
//! |---|---|---|---|---|---|---|
//! | the fastest | [`redis::RedisLock`] | lost messages, unanswered commands | a holder that is paused beyond its lease; a primary that fails before its replica has the key, unless [`wait_replicas`](redis::RedisOptions::wait_replicas) is set | until its lease ends | 1 and 1; 1 for both from waiter to waiter of one process | when it is woken, and twice a second; of each process only the first |
//! | first come, first served over all processes | [`redis::RedisFairLock`] | as above; waiters that die | as above; a dead waiter holds up the others for a while | until its lease ends | 1 and 1 | when it is woken, and twice a second |
//! | readers together, writers alone | [`redis::RedisRwLock`] | as the first; each reader has a lease of its own | as the first; readers of other processes can starve a writer | until its lease ends | 1 and 1 | as the first |
//! | to go on with two of five servers dead | [`redis::Redlock`] | fewer than half of the servers dead or silent | a pause beyond the lease; a node that comes back without its data too early; a clock that jumps | until its lease ends | 1 and 1, to all servers at once | at random, within 50 ms |
//! | never two writers, whatever happens | [`redis::RedisFencedLock`], and a resource that checks | a holder that is paused beyond its lease | a resource that does not check | until its lease ends | as the first | as the first |
//! | a queue that is fair, and servers that agree before they answer | [`zk::ZkLock`] | the death of a minority of the servers, their leader too; a lost connection | a holder that is paused beyond its session (its [`Fence`] is the zxid) | until its session ends | 2 and 1; up to 2 more behind another process; 1 and 1 from waiter to waiter of one process | when the one before it goes |
//! | readers together, with no starving writer | [`zk::ZkRwLock`] | as above | as above | until its session ends | as above; a writer that waited lists once more | as above |
//! | a lock that is not re-entrant, beside Curator's | [`zk::ZkSemaphoreMutex`] | as above | as above | until its session ends | 5 and 1 | as above |
//! | servers that agree before they answer, where etcd is there and ZooKeeper is not | [`etcd::EtcdLock`] | the death of a minority of the servers, their leader too; a server that stands still; a restart | a holder that is paused beyond its lease (its [`Fence`] is the revision that created its key); a server that stood still for longer than a lease and goes on | until its lease ends; a change of the leader or a restart gives every lease its whole time again | 2 and 1, and 1 behind the release | when the one before it goes, and twice a second; of each process only the first |
//! | several locks as one, all or none | [`MultiLock`] | the loss of any part, which is the loss of all | what breaks any of its parts | as its parts | the sum of its parts, one after the other | as its parts |
//! | no other server than the database | [`mysql::TableLeaseLock`] | a holder that dies, unanswered statements | a pause beyond the lease; a clock of the database that jumps | until its lease ends | 1 and 1 | twenty times a second |
//! | the same, where only people end a hold | [`mysql::TableLock`] | unanswered statements; it has no lease to lose | a holder that dies | until somebody deletes its row | 1 and 1 | twenty times a second |
//!
//! Requests are counted one after the other, each a round trip, without what a connection costs at its first use. A lease
//! that is renewed costs one request every third of it (in etcd two), `wait_replicas` two or three for each acquire. ZooKeeper's session
//! has its heartbeats, however many locks there are. A request to ZooKeeper or etcd that writes waits for the disks of a majority.
//!
//! A lease cannot stop a holder that is paused: only the resource can, by refusing an old [`Fence`].
//!
//! Not locks, but related:
//!
//! | you want | take | a holder that dies | requests |
//! |---|---|---|---|
//! | at most a given number at once | [`redis::RedisSemaphore`] | gives its permits back with its lease | 1 to take, 1 to release, 1 to renew |
//! | the same, in the format of Redisson's `RSemaphore` | [`redis::RedisSemaphore::without_lease`] | **keeps its permits for ever** | 1 to take, 1 to release |
//! | the same in ZooKeeper | [`zk::ZkSemaphore`] | gives them back with its session | 4 and one for each lease to take, 1 for each to release |
//! | at most a given number in any interval | [`redis::RateLimiter`] | has spent its admissions | 1 |
//! | to wait until a given number have finished | [`redis::RedisLatch`] | is waited for | 1 to count down; one task of a process looks for all waiters |
//! | to wait until somebody opens | [`zk::ZkBarrier`] | changes nothing | 1 to open, 2 at once for each look |
//! | to begin and to end together | [`zk::ZkDoubleBarrier`] | is not waited for once its session ends | a few for each member; all are let in by one transaction |
//! | a number that all see | [`zk::ZkSharedCount`], [`zk::ZkAtomicLong`] | changes nothing | 1 or 2 to read, 1 or 2 to change |
//!
//! ## What is not here
//!
//! - **No spin lock** (Redisson's `getSpinLock`, which saves a channel for each name): all wake-ups of a client come by one
//!   connection, so that a channel costs little.
//! - **No blocking API**: plain threads call `block_on` of a runtime that has threads of its own (`examples/blocking.rs`).
//! - No PostgreSQL.
//!
//! ## Limits
//!
//! | limit | what happens beyond it |
//! |---|---|
//! | a wait or a lease of ten years | a longer wait ends then; a longer lease is [`LockError::Invalid`], as is one below 1 ms |
//! | a path of 64 KiB in ZooKeeper; as much of [`data`](zk::ZkOptions::data); so many members of a [`zk::ZkDoubleBarrier`] that their paths have 512 KiB | `Invalid`: the server closes the connection over a request of more than 1 MiB (`jute.maxbuffer`) |
//! | a name of 50 characters in the database, of 64 KiB in etcd | `Invalid` |
//! | [`redis::MAX_ADMISSIONS_PER_CALL`] at once from a rate limiter | `Invalid`: one script would stop Redis for seconds |
//! | 19 January 2038 in `tb_lock` | see [`mysql::TableLeaseLock`] |
//! | a runtime that does not run | nothing is taken, renewed or released; see below |
//! | a virtual machine that is paused | its holder cannot know; see below |
//!
//! ## Owners, leases, losses
//!
//! - **An owner is a value.** Without one, each acquire is its own owner, and a second acquire waits for the first.
//!   Give a handle an [`Owner`] (`client.owner()`), and it is re-entrant for that owner, on any thread.
//! - **A lease is renewed** every third while the guard lives. [`Lease::Fixed`] is not renewed.
//! - **The holder learns in time that its lease ends.** [`Guard::lost`] completes a twentieth before the server ends
//!   the lease, or when the session is in doubt; select on it, and stop. A release after that returns
//!   [`LockError::Lost`] and frees nobody else's lock. A loss in the middle of a lease (a key that is deleted or
//!   evicted, a fail-over, a clock that jumps, a suspended machine) is noticed at the next renewal. A virtual machine
//!   that its host pauses or restores sees no time pass at all, and so does its holder. Against that there is the fence.
//! - **A client's runtime must run.** While it does not (a `current_thread` runtime outside `block_on`), nothing is
//!   taken, renewed or released, and a wait does not end, whatever its limit. A holder then learns of its loss by the
//!   clock ([`Guard::is_lost`]), when it looks.
//! - **Nothing is left behind.** Any future may be dropped at any point. A command whose answer never came is undone by
//!   an identity that was made for it alone, so a late undo affects no other hold.
//! - **An unavailable server is reported at once**, in Redis to all waiters of the process. A client of Redis waits for it
//!   until the wait is over if it is asked to ([`wait_while_unavailable`](redis::RedisOptions::wait_while_unavailable)), and
//!   so does a [`MultiLock`] ([`wait_while_unavailable`](MultiLock::wait_while_unavailable)). In ZooKeeper and etcd a
//!   waiter keeps its place while its session or lease is sure.
//! - **`close()` means the same for every client**: from the call on, waiters and later acquires get
//!   [`LockError::Unavailable`]; holders have 3 s to release; those that are left are told that their lock is lost, and nothing
//!   is renewed. What they have goes with the session in ZooKeeper, and elsewhere when they release it or its lease ends.
//! - **What becomes of locks is told by kind and name** to a [`LockObserver`], for metrics and logs: acquired, not acquired,
//!   renewed late, lost, released.
//! - **`Duration::MAX` waits for ever**, that is, for ten years; no lease is longer either.
//!
//! ```no_run
//! # #[cfg(feature = "redis")]
//! # async fn example(redis: oversell_lock::redis::RedisClient) -> Result<(), oversell_lock::LockError> {
//! use std::time::Duration;
//!
//! let lock = redis.lock("door").owner(redis.owner());
//! let outer = lock.acquire(Duration::from_secs(5)).await?;
//! let inner = lock.acquire(Duration::from_secs(5)).await?; // the same owner: at once
//! tokio::select! {
//!     () = outer.lost() => { /* somebody else may have it soon: stop here */ }
//!     () = async { /* the work */ } => {}
//! }
//! inner.release().await?;
//! outer.release().await
//! # }
//! ```
//!
//! `use oversell_lock::prelude::*;` brings the locks, clients and traits, and no modules: a glob of the crate itself would hide
//! the crate `redis`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs, clippy::missing_errors_doc)]
// Many links lead to what features bring: they are checked with all of them.
#![cfg_attr(
    not(all(feature = "axum", feature = "etcd", feature = "mysql", feature = "redis", feature = "zookeeper")),
    allow(rustdoc::broken_intra_doc_links)
)]
// Without a server feature, leases and sessions are unused.
#![cfg_attr(not(any(feature = "etcd", feature = "mysql", feature = "redis", feature = "zookeeper")), allow(dead_code))]

mod error;
mod events;
mod guard;
mod keeper;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "redis"))]
mod lease;
mod lock;
mod multi;
mod owner;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "redis", feature = "zookeeper"))]
mod reentry;
mod registry;
mod sure_until;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "redis", feature = "zookeeper"))]
mod tasks;
mod time;

#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(all(doc, feature = "redis"))]
pub mod guides;
pub mod local;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod prelude;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "zookeeper")]
pub mod zk;

pub use error::{Cause, LockError, WithError};
pub use events::{LockEvent, LockObserver};
pub use guard::{Fence, Guard};
pub use keeper::{Keeper, Release};
#[cfg(any(feature = "etcd", feature = "mysql", feature = "redis"))]
pub use lease::Lease;
#[cfg(feature = "redis")]
pub(crate) use lock::run_and_release;
pub use lock::{DynLock, Holder, Lock};
pub use multi::MultiLock;
pub use owner::{Owner, Process};

pub(crate) use lock::inherent;
pub(crate) use time::{MAX_DURATION, deadline, time_left};
