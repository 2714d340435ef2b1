//! Locks in MySQL or MariaDB, and the connection pool that they stand on.
//!
//! Next to read: [`TableLock`], then [`pool`].

pub mod pool;
mod table_lock;

pub use table_lock::TableLock;
