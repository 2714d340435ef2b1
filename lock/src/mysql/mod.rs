//! Locks in MySQL or MariaDB, and their connection pool.
//!
//! Next to read: [`TableLock`], then [`TableLeaseLock`] and [`MySqlPool`].

mod connection_id;
mod failure;
mod lease_lock;
mod pool;
mod row;
mod table_lock;

pub use failure::{PoolExhausted, is_cut_off};
pub use lease_lock::TableLeaseLock;
pub use pool::{Conn, MySqlOptions, MySqlPool};
pub use row::RowDescription;
pub use table_lock::TableLock;
