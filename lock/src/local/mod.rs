//! What ends at this process's wall: mutexes by key, what its parts share by type, and the queue in which a process's own
//! contenders for one remote lock wait.

mod by_type;
mod mutexes;
#[cfg(feature = "redis")]
pub(crate) mod queue;

pub use by_type::ByType;
pub use mutexes::{MutexGuard, Mutexes};
