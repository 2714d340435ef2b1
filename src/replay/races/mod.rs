//! One race to a file, in the course's order.

mod dead_nodes;
mod forgetful_node;
pub(super) mod herd;
mod jumping_clock;
mod late_delete;
mod look_then_delete;
pub(super) mod node_types;
mod paused_holder;
mod paused_session;
mod promoted_replica;
mod queue_of_nodes;
mod read_then_write;
pub(super) mod zk_barriers;
pub(super) mod zk_counts;
pub(super) mod zk_read_write;
pub(super) mod zk_reentry;

use super::{Replay, faults::Need};

/// Every replay, in the course's order.
pub const ALL: &[Replay] = &[
    read_then_write::REPLAY,
    late_delete::REPLAY,
    look_then_delete::REPLAY,
    promoted_replica::REPLAY,
    dead_nodes::REPLAY,
    node_types::REPLAY,
    herd::REPLAY,
    queue_of_nodes::REPLAY,
    zk_reentry::REPLAY,
    zk_read_write::REPLAY,
    zk_barriers::REPLAY,
    zk_counts::REPLAY,
    paused_holder::REPLAY,
    paused_session::REPLAY,
    forgetful_node::REPLAY,
    jumping_clock::REPLAY,
];

/// What the replays need that break something: each file says so of its own.
const NEEDS: &[(&Replay, &[Need])] = &[
    (&promoted_replica::REPLAY, promoted_replica::NEEDS),
    (&dead_nodes::REPLAY, dead_nodes::NEEDS),
    (&node_types::REPLAY, node_types::NEEDS),
    (&paused_session::REPLAY, paused_session::NEEDS),
    (&forgetful_node::REPLAY, forgetful_node::NEEDS),
    (&jumping_clock::REPLAY, jumping_clock::NEEDS),
];

/// What the replay of this lesson needs of a lab.
pub(super) fn needs(lesson: &str) -> &'static [Need] {
    NEEDS.iter().find(|(replay, _)| replay.lesson == lesson).map_or(&[], |(_, needs)| needs)
}
