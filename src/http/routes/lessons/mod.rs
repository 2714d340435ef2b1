//! `/test/*` and `/demo*`: the lessons for several browser windows. `windows.rs` serves those that register themselves; the others
//! take more than all of them do.

pub(in crate::http) mod demos;
pub(in crate::http) mod windows;
pub(in crate::http) mod zk_atomic;
pub(in crate::http) mod zk_double_barrier;
pub(in crate::http) mod zk_herd;

mod answer;
