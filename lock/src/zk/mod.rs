//! Locks in ZooKeeper, with the node names that Curator has made common: a Java process and ours exclude each other.
//!
//! | Curator | here | file |
//! |---|---|---|
//! | `InterProcessMutex` | [`ZkLock`] | `mutex.rs` |
//! | `InterProcessReadWriteLock` | [`ZkRwLock`] | `read_write.rs` |
//! | `InterProcessSemaphoreV2` | [`ZkSemaphore`] | `semaphore.rs` |
//! | `InterProcessSemaphoreMutex` | [`ZkSemaphoreMutex`] | `semaphore.rs` |
//! | `InterProcessMultiLock` | [`MultiLock`](crate::MultiLock) | `../multi.rs` |
//! | `DistributedBarrier` | [`ZkBarrier`] | `barrier.rs` |
//! | `DistributedDoubleBarrier` | [`ZkDoubleBarrier`] | `double_barrier.rs` |
//! | `SharedCount` | [`ZkSharedCount`] | `shared_count.rs` |
//! | `DistributedAtomicLong` | [`ZkAtomicLong`] | `atomic_long.rs` |
//!
//! An acquire is read in five files: `mutex.rs` is the recipe, `engine/hold.rs` how it is taken, once more or for the
//! first time, `engine/queue.rs` how it waits for its turn, `engine/queue_view.rs` what it knows of the nodes before it,
//! `engine/node.rs` its own. [`ZkClient`] is one for a process and keeps a session; `engine/session.rs` is how.

mod atomic_long;
mod barrier;
mod client;
mod double_barrier;
mod engine;
mod mutex;
mod options;
mod read_write;
mod semaphore;
mod shared_count;

pub use atomic_long::{Outcome, ZkAtomicLong};
pub use barrier::ZkBarrier;
pub use client::ZkClient;
pub use double_barrier::ZkDoubleBarrier;

pub use mutex::ZkLock;
pub use options::ZkOptions;
pub use read_write::{ZkReadLock, ZkRwLock, ZkWriteLock};
pub use semaphore::{ZkSemaphore, ZkSemaphoreMutex};
pub use shared_count::{Versioned, ZkSharedCount};
