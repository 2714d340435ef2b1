//! Until when a lease or a session surely lasts.
//!
//! Its keeper moves the end whenever the server has answered: to the time at which the request was *sent*, and as long
//! after it as the server is bound to keep what is ours. So a process that stood still knows at once when it goes on: the
//! end has passed by the clock, and no message is needed.
//!
//! An end that has passed never moves again. What was told lost stays lost, though the session may come back.
//!
//! **What breaks it**: a clock that stands still with the process: that of a machine that is suspended as a whole.

use std::sync::Arc;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The end, shared by all that rely on it.
#[derive(Debug)]
pub(crate) struct SureUntil(watch::Sender<Instant>);

impl SureUntil {
    pub(crate) fn new(end: Instant) -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(end)))
    }

    /// Moves the end to a later time; `false` where it has passed already.
    #[cfg(any(feature = "mysql", feature = "redis", feature = "zookeeper"))]
    pub(crate) fn extend(&self, later: Instant) -> bool {
        let mut lasts = false;
        // No task is woken: those that sleep until the old end look again then.
        self.0.send_if_modified(|end| {
            lasts = Instant::now() < *end;
            if lasts {
                *end = later.max(*end);
            }
            false
        });
        lasts
    }

    /// It is over now.
    pub(crate) fn end(&self) {
        self.0.send_modify(|end| *end = Instant::now().min(*end));
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.0.borrow() <= Instant::now()
    }

    /// Completes when the end has come.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn over(&self) {
        let mut ends = self.0.subscribe();
        loop {
            let end = *ends.borrow_and_update();
            if end <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(end) => {}
                _ = ends.changed() => {}
            }
        }
    }
}

#[cfg(all(test, any(feature = "mysql", feature = "redis", feature = "zookeeper")))]
mod tests {
    use super::*;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn an_end_that_has_passed_never_moves_again() {
        let start = Instant::now();
        let sure = SureUntil::new(start + LONG);
        assert!(!sure.is_over() && sure.extend(start + 2 * LONG) && sure.extend(start + LONG));
        assert_eq!(*sure.0.borrow(), start + 2 * LONG, "nor back");
        sure.end();
        assert!(sure.is_over() && !sure.extend(start + 9 * LONG) && sure.is_over());
        sure.over().await;
    }

    #[tokio::test]
    async fn who_waits_is_told_of_an_early_end_and_not_of_an_extension() {
        let sure = SureUntil::new(Instant::now() + LONG);
        let mut waiter = Box::pin(sure.over());
        assert!(futures::poll!(&mut waiter).is_pending());
        assert!(sure.extend(Instant::now() + 2 * LONG));
        assert!(futures::poll!(&mut waiter).is_pending());
        sure.end();
        assert!(futures::poll!(&mut waiter).is_ready());
    }
}
