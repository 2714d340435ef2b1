//! Locks in MySQL or MariaDB, and the connection pool that they stand on.
//!
//! Next to read: [`TableLock`], then [`TableLeaseLock`] and [`pool`].

mod lease_lock;
pub mod pool;
mod row;
mod session;
mod table_lock;

pub use lease_lock::TableLeaseLock;
pub use row::Caller;
pub use session::Session;
pub use table_lock::TableLock;
