//! What ends at this process's wall: mutexes by key, what its parts share by type, and the line in which a process's own
//! contenders for one remote lock wait.

mod by_type;
#[cfg(feature = "redis")]
pub(crate) mod line;
mod mutexes;

pub use by_type::ByType;
pub use mutexes::{MutexGuard, Mutexes};
