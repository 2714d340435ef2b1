//! What ends at this process's wall: mutexes by key, and the queue in which a process's own contenders for
//! one remote lock wait.

mod mutexes;

pub use mutexes::Mutexes;
