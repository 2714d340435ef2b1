//! A client's background tasks: they run in the runtime in which the client was made, whichever runtime a handle, a guard or
//! a future of it is used or dropped in, and where none is entered at all.

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
    /// [`LockError::Invalid`] where there is none.
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

    /// For tasks that nobody waits for.
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
