//! The lessons that are tried with several browser windows and sell nothing: semaphores, a latch, barriers, locks, shared
//! numbers.
//!
//! Each is one function for one request, on the names of ARCHITECTURE.md ("Names"); those that begin with `zk_` are ZooKeeper's,
//! the others Redis'. Each prints a line for every step on its instance's console.

mod stay;

pub mod deadlocks;
pub mod demo1;
pub mod demo2;
pub mod demo_layer;
pub mod fair;
pub mod latch;
pub mod limits;
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

use crate::stock::Name;

/// What the lessons write in the servers, for a reset to clear.
pub(crate) fn names() -> impl Iterator<Item = &'static Name> {
    let all = [
        demo1::NAMES,
        demo2::NAMES,
        demo_layer::NAMES,
        fair::NAMES,
        latch::NAMES,
        multi::NAMES,
        read_write::NAMES,
        reentrant::NAMES,
        semaphore::NAMES,
        zk_barriers::NAMES,
        zk_counts::NAMES,
        zk_locks::NAMES,
        zk_semaphore::NAMES,
    ];
    all.into_iter().flatten()
}
