//! One race to a file, in the course's order.

mod dead_row;
mod deadlocks;
mod exec_nil;
mod forced;
mod late_delete;
mod late_unlock;
mod limits;
mod look_then_delete;
mod one_order;
mod read_then_write;
mod row_lock;
mod shared_lock;
mod two_mutexes;
mod unlock_before_commit;
mod version_moved;

use super::Replay;

pub(super) use exec_nil::WITHOUT_WATCH;
pub(super) use forced::ACTS as DEMOS;
pub(super) use limits::ACTS as LIMITS;
pub(super) use one_order::ORDERS;

/// Every replay, in the course's order.
pub const ALL: &[Replay] = &[
    read_then_write::REPLAY,
    two_mutexes::REPLAY,
    row_lock::REPLAY,
    shared_lock::REPLAY,
    version_moved::REPLAY,
    exec_nil::REPLAY,
    late_delete::REPLAY,
    look_then_delete::REPLAY,
    dead_row::REPLAY,
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
