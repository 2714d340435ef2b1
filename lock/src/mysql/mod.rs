//! Locks in MySQL, and the connection pool that they stand on.
pub mod pool;

use crate::{Guard, Lock, LockError, Process};
use pool::MySqlPool;
use std::time::Duration;

/// x
#[derive(Debug)]
pub struct TableLock;

impl TableLock {
    /// x
    #[must_use]
    pub fn new(_pool: &MySqlPool, _name: &str, _process: &Process) -> Self {
        Self
    }
}

impl Lock for TableLock {
    fn name(&self) -> &str {
        unimplemented!()
    }
    async fn acquire(&self, _wait: Duration) -> Result<Guard, LockError> {
        unimplemented!()
    }
}
