//! One race to a file, in the course's order.

mod compare_and_delete;
pub(super) mod count_to_three;
mod dead_holder;
pub(super) mod latch;
mod late_delete;
pub(super) mod late_renewal;
mod long_job;
mod look_then_delete;
pub(super) mod permits;
mod queue_order;
mod read_then_write;
pub(super) mod read_write;
pub(super) mod reentry;

use super::Replay;

/// Every replay, in the course's order.
pub const ALL: &[Replay] = &[
    read_then_write::REPLAY,
    dead_holder::REPLAY,
    late_delete::REPLAY,
    look_then_delete::REPLAY,
    count_to_three::REPLAY,
    compare_and_delete::REPLAY,
    reentry::REPLAY,
    long_job::REPLAY,
    late_renewal::REPLAY,
    queue_order::REPLAY,
    read_write::REPLAY,
    permits::REPLAY,
    latch::REPLAY,
];
