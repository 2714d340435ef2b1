//! The owner of a lock: a process and a number, never a thread.
//!
//! Redisson writes `<client uuid>:<thread id>`. Async code has no thread of its own, so the second part is a fresh
//! number for each owner (a request, say). Java reads it as a signed 64-bit integer.

use crate::LockError;
use arrayvec::ArrayString;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};
use uuid::Uuid;

/// The longest label of a process, in bytes, which are characters here: a label is ASCII. A longer one is refused.
const MAX_LABEL_LENGTH: usize = 32;

/// This process as the lock servers see it: a random uuid, an optional label, and a counter of owners.
///
/// ```
/// # use oversell_lock::{LockError, Process};
/// # fn main() -> Result<(), LockError> {
/// let process = Process::labelled("shop-3")?;
/// assert!(process.owner().to_string().starts_with("shop-3-"));
/// assert_ne!(process.owner(), process.owner());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Process(Arc<ProcessState>);

/// What all clones of one [`Process`] share: its identity, and the number of its next owner.
#[derive(Debug)]
struct ProcessState {
    id: ProcessId,
    next: AtomicI64,
}

/// The identity of a process, written `<label>-<uuid>`, or `<uuid>` if the label is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProcessId {
    label: ArrayString<MAX_LABEL_LENGTH>,
    uuid: Uuid,
}

/// The identity of one contender: its process, and a number that no other owner of that process has. It is written
/// `<process>:<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    process: ProcessId,
    number: i64,
}

impl Process {
    /// Makes a process with a uuid of its own, whose owners are counted from 1.
    #[must_use]
    pub fn new() -> Self {
        Self::with_label(ArrayString::new())
    }

    /// Makes a process that is written `<label>-<uuid>`, so that the server shows whose lock it is.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] if `label` is empty, has more than 32 characters, or has one that is no ASCII letter,
    /// digit, `-`, `_` or `.`.
    pub fn labelled(label: &str) -> Result<Self, LockError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match ArrayString::from(label) {
            Ok(label) if !label.is_empty() && label.chars().all(plain) => Ok(Self::with_label(label)),
            _ => Err(LockError::Invalid { name: label.to_owned(), rule: "a label has 1 to 32 letters, digits, -, _ or ." }),
        }
    }

    /// Makes a process with a fresh uuid and this label, which may be empty; its owners are counted from 1.
    fn with_label(label: ArrayString<MAX_LABEL_LENGTH>) -> Self {
        Self(Arc::new(ProcessState { id: ProcessId { label, uuid: Uuid::new_v4() }, next: AtomicI64::new(1) }))
    }

    /// Makes a new owner, with the next number of this process.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { process: self.0.id, number: self.0.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns the process's uuid, without the label.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.0.id.uuid
    }
}

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.id.fmt(f)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            write!(f, "{}-", self.label)?;
        }
        self.uuid.fmt(f)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_a_server_would_show_badly_is_refused() {
        for label in ["", "a b", "a:1", "店", &"x".repeat(33)] {
            assert!(matches!(Process::labelled(label), Err(LockError::Invalid { .. })), "{label}");
        }
        assert!(Process::labelled(&"x".repeat(32)).is_ok());
    }
}
