//! A client's background tasks, and its end. They run in the runtime in which the client was made, or that its options
//! name, wherever its handles, guards and futures are used or dropped.
//!
//! A client is closed in three steps, whatever its server:
//!
//! 1. From the call on, waiters and later callers are refused.
//! 2. The client waits until all holders have released, [`CLOSE_TIMEOUT`] at most.
//! 3. The remaining holders are told that their lock is lost, and nothing is renewed any more.

use crate::{LockError, error::ClientClosed};
use std::{future::Future, time::Duration};
use tokio::{runtime::Handle, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a client that is closed waits for its holders; those that are left are then told that their lock is lost. It is
/// well below the 10 s after which Docker kills a container that it stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// One client's background tasks, their runtime, and whether the client is being closed or is closed. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl Tasks {
    /// Makes the set of a client that has no task yet, for this runtime, or for the current one if it is `None`.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] if there is no runtime.
    pub(crate) fn in_runtime(runtime: Option<Handle>) -> Result<Self, LockError> {
        let rule = "must be made in a tokio runtime, or be given one";
        let current = || Handle::try_current().map_err(|_| LockError::invalid("runtime", rule));
        Ok(Self {
            runtime: runtime.map_or_else(current, Ok)?,
            tracker: TaskTracker::new(),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
        })
    }

    /// Spawns a task in the client's runtime, which `close` waits for.
    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn_on(task, &self.runtime)
    }

    /// Returns the runtime, for tasks that `close` need not wait for.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns the result of `future`, or an error once the client is being closed.
    ///
    /// # Cancel safety
    ///
    /// As that of `future`, which is dropped when the client is closed.
    #[cfg(any(feature = "etcd", feature = "mysql", feature = "redis"))]
    pub(crate) async fn while_open<T>(
        &self,
        server: &'static str,
        future: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(closed_error(server)),
            done = future => done,
        }
    }

    /// Whether [`close`](Self::close) was called.
    #[cfg(feature = "zookeeper")]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Completes when [`close`](Self::close) is called.
    #[cfg(feature = "zookeeper")]
    pub(crate) async fn wait_until_closing(&self) {
        self.closing.cancelled().await;
    }

    /// Completes once the client is closed and the time for releases is over: what is still held is lost.
    #[cfg(any(feature = "etcd", feature = "mysql", feature = "redis"))]
    pub(crate) async fn wait_until_closed(&self) {
        self.closed.cancelled().await;
    }

    /// Refuses waiters and later callers, waits until no task is left, [`CLOSE_TIMEOUT`] at most, and then counts what is still
    /// held as lost. The tasks go on.
    ///
    /// # Cancel safety
    ///
    /// It may be called again. Once it is polled, waiters and later callers are refused.
    pub(crate) async fn close(&self, server: &'static str) {
        self.closing.cancel();
        if timeout(CLOSE_TIMEOUT, self.wait_until_ended()).await.is_err() {
            let held = self.tracker.len();
            tracing::warn!(server, held, "the client closes while locks are held; their holders are told that they are lost");
        }
        self.closed.cancel();
    }

    /// Waits until no task is left.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn wait_until_ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// The error of waiters and callers after `close`.
pub(crate) fn closed_error(server: &'static str) -> LockError {
    LockError::unavailable(server, ClientClosed)
}
