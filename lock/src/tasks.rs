//! A client's background tasks, and its end. They run in the runtime in which the client was made, or that its options
//! name, wherever its handles, guards and futures are used or dropped.
//!
//! A client is closed in three steps, whatever its server:
//!
//! 1. From the call on, whoever waits or comes is refused.
//! 2. It waits for the holders to release, [`CLOSE_TIMEOUT`] at most.
//! 3. Those that still hold are told that their lock is lost, and nothing is renewed any more.

use crate::{LockError, error::ClientClosed};
use std::{future::Future, time::Duration};
use tokio::{runtime::Handle, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a client that is closed waits for its holders.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The tasks that a client waits for when it is closed. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl Tasks {
    /// No tasks yet, in this runtime or else in the current one.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] without either.
    pub(crate) fn on(runtime: Option<Handle>) -> Result<Self, LockError> {
        let rule = "must be made in a tokio runtime, or be given one";
        let current = || Handle::try_current().map_err(|_| LockError::invalid("runtime", rule));
        Ok(Self {
            runtime: runtime.map_or_else(current, Ok)?,
            tracker: TaskTracker::new(),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
        })
    }

    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn_on(task, &self.runtime)
    }

    /// The runtime, for tasks that `close` need not wait for.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The result of `future`, unless the client is closed before it.
    ///
    /// # Cancel safety
    ///
    /// As that of `future`, which is dropped when the client is closed.
    #[cfg(any(feature = "mysql", feature = "redis"))]
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

    #[cfg(feature = "zookeeper")]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Completes when [`close`](Self::close) is called.
    #[cfg(feature = "zookeeper")]
    pub(crate) async fn wait_until_closing(&self) {
        self.closing.cancelled().await;
    }

    /// Completes when the client is closed and holders have had their time: what they still hold is lost.
    #[cfg(any(feature = "mysql", feature = "redis"))]
    pub(crate) async fn wait_until_closed(&self) {
        self.closed.cancelled().await;
    }

    /// Closes the client; see the module.
    ///
    /// # Cancel safety
    ///
    /// It may be called again. Once polled, whoever waits or comes is refused.
    pub(crate) async fn close(&self, server: &'static str) {
        self.closing.cancel();
        if timeout(CLOSE_TIMEOUT, self.wait_until_ended())
            .await
            .is_err()
        {
            let held = self.tracker.len();
            tracing::warn!(
                server,
                held,
                "the client closes while locks are held; their holders are told that they are lost"
            );
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

/// The error of whoever comes after `close`.
pub(crate) fn closed_error(server: &'static str) -> LockError {
    LockError::unavailable(server, ClientClosed)
}
