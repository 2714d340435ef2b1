//! Work that must be done although its caller may be gone: an unlock, a deletion.
//!
//! It is done in a task of its own, once: when it is asked for, else when it is dropped. So a caller that is cancelled at any
//! `await`, or panics, leaves nothing behind. **What it cannot do**: anything for a process that was killed.

use crate::ctx::Ctx;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::task::TaskTracker;

/// Cleanup work that is done once: by `run_now`, or in the background when this is dropped, unless it was cancelled.
pub(crate) struct Backstop<T: Send + 'static> {
    tasks: TaskTracker,
    /// Behind a lock, since a future can be sent to another thread and not shared with it.
    work: Mutex<Option<BoxFuture<'static, T>>>,
}

impl<T: Send + 'static> Backstop<T> {
    /// Keeps `work` for later; nothing is started yet.
    pub(crate) fn new(ctx: &Ctx, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { tasks: ctx.tasks.clone(), work: Mutex::new(Some(Box::pin(work))) }
    }

    /// Runs the work in a task of its own and returns its result; `None` if it panicked (logged), or the runtime is gone.
    pub(crate) async fn run_now(mut self) -> Option<T> {
        let done = self.start()?.await;
        done.inspect_err(|error| tracing::warn!(%error, "cleaning up was interrupted")).ok()
    }

    /// Gives the work up: it is no longer needed.
    pub(crate) fn cancel(mut self) {
        *self.work.get_mut() = None;
    }

    /// Spawns the work as a tracked task; `None` if it was started or cancelled before, or the runtime is gone.
    fn start(&mut self) -> Option<JoinHandle<T>> {
        let work = self.work.get_mut().take()?;
        Some(self.tasks.spawn_on(work, &Handle::try_current().ok()?))
    }
}

impl<T: Send + 'static> Drop for Backstop<T> {
    fn drop(&mut self) {
        drop(self.start());
    }
}
