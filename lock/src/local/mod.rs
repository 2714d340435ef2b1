//! What works within one process: mutexes by key, shared values by type, and the line of waiters for one remote lock.

mod by_type;
#[cfg(feature = "redis")]
pub(crate) mod line;
mod mutexes;

pub use by_type::ByType;
pub use mutexes::{MutexGuard, Mutexes};
