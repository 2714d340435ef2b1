//! A lock as its server has it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockEntry {
    pub(super) key: String,
    /// The text in the server that stands for the owner.
    pub(super) owner: String,
    /// In milliseconds; -1 for a lock without a lease.
    pub(super) pttl: Option<i64>,
    /// The owner's holds, if the lock counts them.
    pub(super) count: Option<i64>,
    /// The owner and its waiters, in the server's order.
    pub(super) queue: Vec<String>,
}

impl LockEntry {
    /// Puts the name of the node before the key: `redis-2 redLock:7`.
    pub(super) fn on_node(self, n: usize) -> Self {
        Self {
            key: format!("{} {}", node_name(n), self.key),
            ..self
        }
    }

    /// Whether the lock never ends by itself, though its server has leases.
    pub(super) fn has_no_lease(&self) -> bool {
        self.pttl == Some(-1)
    }

    /// Whether both are the same hold, seen at different times.
    pub(super) fn is_same_hold(&self, other: &Self) -> bool {
        self.key == other.key && self.owner == other.owner
    }
}

/// The lab's name of a Redis node: `redis`, `redis-2` …
pub(super) fn node_name(n: usize) -> String {
    match n {
        0 => "redis".to_owned(),
        n => format!("redis-{}", n + 1),
    }
}
