//! What the contract needs to know of a lock.

use oversell_lock::{Guard, Lock, LockError};
use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Locks of one kind, on one server.
pub(crate) trait Family: Send + Sync + 'static {
    /// The name of the lock, as tests are named after it.
    const NAME: &'static str;
    /// Whether each waiting process can be seen on the server.
    const QUEUES: bool;
    /// An independent client: what another process would be.
    type Process: Process;

    /// `host:port` of the server.
    fn server(&self) -> String;

    /// A new process that reaches the server at `address`.
    fn process_at(&self, address: &str) -> impl Future<Output = Self::Process> + Send;

    /// What is on the server under this name: nodes, keys, rows.
    fn left(&self, name: &str) -> impl Future<Output = Vec<String>> + Send;

    /// Whether every server shows this lock: a majority of several is had before the last of them has heard of it.
    fn is_everywhere(&self, name: &str) -> impl Future<Output = bool> + Send {
        async { !self.left(name).await.is_empty() }
    }

    /// Ends the lease or session of the process that holds the lock, or deletes its row, behind its back.
    fn take_away(&self, holder: &Self::Process, name: &str) -> impl Future<Output = ()> + Send;

    /// A new process with a straight way to the server.
    fn process(&self) -> impl Future<Output = Self::Process> + Send {
        async { self.process_at(&self.server()).await }
    }
}

/// A client of its own.
pub(crate) trait Process: Send + Sync + 'static {
    /// Its lock.
    type Lock: Lock + 'static;

    /// A new contender.
    fn lock(&self, name: &str) -> Self::Lock;

    /// An orderly end.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Two handles of one owner as one lock: who has the first takes the second, and gives the first back at once.
pub(crate) struct Then<A, B>(pub(crate) A, pub(crate) B);

/// A re-entrant handle that takes its lock twice.
pub(crate) type Twice<L> = Then<L, L>;

impl<L: Clone> Twice<L> {
    pub(crate) fn of(lock: L) -> Self {
        Self(lock.clone(), lock)
    }
}

impl<A: Lock, B: Lock> Lock for Then<A, B> {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let outer = self.0.acquire(wait).await?;
        let inner = self.1.acquire(Duration::ZERO).await?;
        outer.release().await?;
        Ok(inner)
    }
}

/// A name that no other test uses, and that does not begin another's.
pub(crate) fn name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(
        "/contract/{}-{:06}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Waits until `condition` holds.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Result<(), String> {
    let held = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(super::clauses::SOON, held)
        .await
        .map_err(|_| format!("never came: {what}"))
}
