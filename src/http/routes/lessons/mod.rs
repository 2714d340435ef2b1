//! `/test/*` and `/demo*`: the lessons for several browser windows. `windows.rs` serves those that register themselves; the others
//! take more than all of them do.

pub(super) mod demos;
pub(super) mod windows;
pub(super) mod zk_atomic;
pub(super) mod zk_double_barrier;
pub(super) mod zk_herd;

mod answer;
