//! One race to a file, in the course's order.

mod compare_and_delete;
pub(super) mod count_to_three;
mod dead_holder;
mod dead_nodes;
mod dead_row;
mod deadlocks;
pub(super) mod exec_nil;
pub(super) mod forced;
mod forgetful_node;
pub(super) mod herd;
mod jumping_clock;
pub(super) mod latch;
mod late_delete;
pub(super) mod late_renewal;
mod late_unlock;
pub(super) mod limits;
mod long_job;
mod look_then_delete;
pub(super) mod node_types;
pub(super) mod one_order;
mod paused_holder;
mod paused_session;
pub(super) mod permits;
mod promoted_replica;
mod queue_of_nodes;
mod queue_order;
mod read_then_write;
pub(super) mod read_write;
pub(super) mod reentry;
mod row_lock;
mod shared_lock;
mod two_mutexes;
mod unlock_before_commit;
mod version_moved;
pub(super) mod zk_barriers;
pub(super) mod zk_counts;
pub(super) mod zk_read_write;
pub(super) mod zk_reentry;

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
    promoted_replica::REPLAY,
    queue_order::REPLAY,
    dead_nodes::REPLAY,
    read_write::REPLAY,
    permits::REPLAY,
    latch::REPLAY,
    node_types::REPLAY,
    herd::REPLAY,
    queue_of_nodes::REPLAY,
    zk_reentry::REPLAY,
    zk_read_write::REPLAY,
    zk_barriers::REPLAY,
    zk_counts::REPLAY,
    dead_row::REPLAY,
    late_renewal::REPLAY,
    one_order::ONE_ORDER,
    unlock_before_commit::REPLAY,
    one_order::CLUSTER,
    late_unlock::REPLAY,
    paused_holder::REPLAY,
    paused_session::REPLAY,
    forgetful_node::REPLAY,
    jumping_clock::REPLAY,
    deadlocks::OPPOSITE_ORDER,
    deadlocks::SHARED_TO_EXCLUSIVE,
    deadlocks::FULL_SCAN,
    deadlocks::GAP,
    deadlocks::LOCK_WAIT,
    limits::REPLAY,
    forced::REPLAY,
];
