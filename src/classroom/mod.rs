//! The lessons that are tried with several browser windows and sell nothing: a semaphore, a latch,
//! locks.
//!
//! Each is one function for one request, on the names of CONTRACT section 5.

pub mod fair;
pub mod latch;
pub mod multi;
pub mod read_write;
pub mod reentrant;
pub mod semaphore;
pub mod visit;
pub mod zk_herd;
