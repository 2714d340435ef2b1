//! One race to a file, in the course's order.

mod compare_and_delete;
pub(super) mod count_to_three;
mod dead_holder;
mod dead_row;
mod deadlocks;
pub(super) mod exec_nil;
pub(super) mod forced;
pub(super) mod latch;
mod late_delete;
pub(super) mod late_renewal;
mod late_unlock;
pub(super) mod limits;
mod long_job;
mod look_then_delete;
pub(super) mod one_order;
pub(super) mod permits;
mod queue_order;
mod read_then_write;
pub(super) mod read_write;
pub(super) mod reentry;
mod row_lock;
mod shared_lock;
mod two_mutexes;
mod unlock_before_commit;
mod version_moved;

use super::Replay;

/// Every replay, in the course's order.
pub const ALL: &[Replay] = &[
    read_then_write::REPLAY,
    two_mutexes::REPLAY,
    row_lock::REPLAY,
    shared_lock::REPLAY,
    version_moved::REPLAY,
    exec_nil::REPLAY,
    dead_holder::REPLAY,
    late_delete::REPLAY,
    look_then_delete::REPLAY,
    count_to_three::REPLAY,
    compare_and_delete::REPLAY,
    reentry::REPLAY,
    long_job::REPLAY,
    queue_order::REPLAY,
    read_write::REPLAY,
    permits::REPLAY,
    latch::REPLAY,
    dead_row::REPLAY,
    late_renewal::REPLAY,
    one_order::ONE_ORDER,
    unlock_before_commit::REPLAY,
    one_order::CLUSTER,
    late_unlock::REPLAY,
    deadlocks::OPPOSITE_ORDER,
    deadlocks::SHARED_TO_EXCLUSIVE,
    deadlocks::FULL_SCAN,
    deadlocks::GAP,
    deadlocks::LOCK_WAIT,
    limits::REPLAY,
    forced::REPLAY,
];
