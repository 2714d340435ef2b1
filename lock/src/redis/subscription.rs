//! A subscription to one channel, which begins when somebody first waits for its news and ends with the value.
//!
//! What it survives: a SUBSCRIBE that fails (who waits looks again after a while all the same), a value that is dropped
//! while a new one subscribes: whoever still listens keeps the subscription.
//!
//! Next to read: `wakeups.rs`.

use super::wakeups::Wakeups;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::{runtime::Handle, sync::Notify};

/// One channel.
#[derive(Debug)]
pub(super) struct Subscription {
    channel: String,
    news: Arc<Notify>,
    subscribed: AtomicBool,
    wakeups: Arc<Wakeups>,
}

impl Subscription {
    /// Not yet begun.
    pub(super) fn new(channel: String, wakeups: &Arc<Wakeups>) -> Self {
        Self { channel, news: Arc::default(), subscribed: AtomicBool::new(false), wakeups: Arc::clone(wakeups) }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Told of each message, once it has begun.
    pub(super) fn news(&self) -> &Notify {
        &self.news
    }

    pub(super) fn has_begun(&self) -> bool {
        self.subscribed.load(Ordering::Acquire)
    }

    /// Begins, once; `true` where it did so now.
    pub(super) async fn begin(&self) -> bool {
        if self.has_begun() {
            return false;
        }
        self.wakeups.listen(&self.channel, &self.news);
        if let Err(error) = self.wakeups.subscribe(&self.channel).await {
            tracing::debug!(%error, channel = self.channel, "no wake-ups");
            return false;
        }
        self.subscribed.store(true, Ordering::Release);
        true
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !*self.subscribed.get_mut() {
            return;
        }
        // Before the task runs: it ends the subscription only where nobody listens.
        drop(std::mem::take(&mut self.news));
        let (wakeups, channel) = (Arc::clone(&self.wakeups), std::mem::take(&mut self.channel));
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = wakeups.unsubscribe(&channel).await {
                    tracing::debug!(%error, channel, "not unsubscribed");
                }
            });
        }
    }
}
