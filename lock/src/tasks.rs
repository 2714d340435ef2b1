//! A client's background tasks. They run in the runtime in which the client was made, wherever its handles, guards and
//! futures are used or dropped.

use crate::LockError;
use std::future::Future;
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::task::TaskTracker;

/// The tasks that a client waits for when it is closed. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
}

impl Tasks {
    /// No tasks yet, in the current runtime.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] outside a runtime.
    pub(crate) fn in_current_runtime() -> Result<Self, LockError> {
        let rule = "must be made in a tokio runtime";
        let runtime = Handle::try_current().map_err(|_| LockError::invalid("runtime", rule))?;
        Ok(Self {
            runtime,
            tracker: TaskTracker::new(),
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

    /// Waits until no task is left.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    pub(crate) fn len(&self) -> usize {
        self.tracker.len()
    }
}
