//! One race to a file, in the course's order.

mod late_delete;
mod look_then_delete;
mod read_then_write;

use super::Replay;

/// Every replay, in the course's order.
pub const ALL: &[Replay] = &[read_then_write::REPLAY, late_delete::REPLAY, look_then_delete::REPLAY];
