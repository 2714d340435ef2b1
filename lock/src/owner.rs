//! Who holds a lock: a process and a number, never a thread.
//!
//! Redisson writes `<client uuid>:<thread id>`; async code has no thread of its own, so the second part is
//! a fresh number for each logical owner (a request, say). Java reads it as a signed 64-bit integer.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};
use uuid::Uuid;

/// This process as the lock servers see it: a random uuid, and a counter of owners.
#[derive(Debug, Clone)]
pub struct Process(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: Uuid,
    next: AtomicI64,
}

/// One contender: written `<process uuid>:<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    process: Uuid,
    number: i64,
}

impl Process {
    /// A process with a uuid of its own, whose owners are counted from 1.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner { id: Uuid::new_v4(), next: AtomicI64::new(1) }))
    }

    /// An owner that nobody had before.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { process: self.0.id, number: self.0.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// The uuid.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.0.id
    }
}

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.number)
    }
}
