//! What ends at this process's wall: mutexes by key, and the queue in which a process's own contenders for
//! one remote lock wait.

mod mutexes;
#[cfg(feature = "redis")]
pub(crate) mod queue;

pub use mutexes::Mutexes;
