//! Locks in MySQL or MariaDB, and their connection pool.
//!
//! Next to read: [`TableLock`], then [`TableLeaseLock`] and [`TablePool`].

mod connection_id;
mod failure;
mod lease_lock;
mod pool;
mod row;
mod table_lock;

pub use failure::{PoolExhausted, TableMissing, is_cut_off};
pub use lease_lock::TableLeaseLock;
pub use pool::{Conn, MySqlOptions, TablePool};
pub use row::RowDescription;
pub use table_lock::TableLock;
