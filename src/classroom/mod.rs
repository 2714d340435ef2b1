//! The lessons that are tried with several browser windows and sell nothing: semaphores, a latch, barriers, locks, shared
//! numbers.
//!
//! Each is one function for one request, on the names of `docs/names.md`; those that begin with `zk_` are ZooKeeper's,
//! the others Redis'. Each prints a line for every step on its instance's console. A file in `windows/` registers itself: it
//! says at which addresses it is visited, and `http` serves them; it is written in what this file imports. The lessons beside
//! `windows/` have parameters of their own.

include!(concat!(env!("OUT_DIR"), "/windows.rs"));

pub mod deadlocks;
pub mod demo1;
pub mod demo2;
pub mod demo_layer;
pub mod limits;
pub mod window;
pub mod zk_atomic;
pub mod zk_double_barrier;
pub mod zk_herd;

pub use latch::latch_count;
pub use semaphore::free_permits;
pub use zk_barrier::is_barrier_closed;

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Job, Name},
};
use oversell_lock::Lock;
use std::time::Duration;
use window::{Answer, LockVisit, WindowAddress, WindowLesson, hold_after_answer, hold_permit, renew_expiry};

/// Every address of every lesson in `windows/`; a lesson has one or more.
pub fn windows() -> impl Iterator<Item = &'static WindowAddress> {
    FILES.iter().flat_map(|lesson| lesson.windows)
}

/// The names that lessons use in the servers; a reset clears them.
pub(crate) fn names() -> impl Iterator<Item = &'static Name> {
    let others = [demo1::NAMES, demo2::NAMES, demo_layer::NAMES, zk_atomic::NAMES, zk_double_barrier::NAMES];
    let windows = FILES.iter().map(|lesson| lesson.names);
    windows.chain(others).flatten()
}
