//! The lessons that are tried with several browser windows and sell nothing: semaphores, a latch, barriers, locks, shared
//! numbers.
//!
//! Each is one function for one request, on the names of CONTRACT section 5; those that begin with `zk_` are ZooKeeper's,
//! the others Redis'.

mod stay;

pub mod fair;
pub mod latch;
pub mod multi;
pub mod read_write;
pub mod reentrant;
pub mod semaphore;
pub mod visit;
pub mod zk_barriers;
pub mod zk_counts;
pub mod zk_herd;
pub mod zk_locks;
pub mod zk_semaphore;
