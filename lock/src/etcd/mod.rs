//! Locks in etcd, with the keys of Go's `concurrency.Mutex` and of etcd's own lock service: all three exclude each other.
//!
//! An acquire is read in three files: `lock.rs` is the handle and the hold, `claim.rs` a lease with its key in the queue and how
//! it waits for its turn, `gateway.rs` how etcd is asked. [`EtcdClient`] is one for a process.
//!
//! etcd is asked by its JSON gateway (`/v3/…`, HTTP/1.1), which every node serves: a client of its gRPC interface would bring a
//! compiler of protocol buffers into the build.

mod claim;
mod client;
mod gateway;
mod lock;
mod options;

pub use client::EtcdClient;
pub use lock::EtcdLock;
pub use options::EtcdOptions;

/// The server's name in errors.
const SERVER: &str = "etcd";
