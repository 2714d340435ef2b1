//! The queue before the server's: of this process's contenders for one name, a few at a time contend there.
//!
//! The others wait in order of arrival. How many contend at once is the lock's to say: it costs the server something
//! for each, and a process with many requests would push the others back.

use crate::registry::Registry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The local queues by name. One that nobody uses takes no memory for long.
#[derive(Debug)]
pub(crate) struct Places {
    at_once: usize,
    queues: Registry<String, Semaphore>,
}

/// Leave to contend on the server, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Places {
    pub(crate) fn new(at_once: usize) -> Self {
        Self { at_once, queues: Registry::default() }
    }

    /// A place, waiting in order of arrival.
    ///
    /// # Cancel safety
    ///
    /// Safe: the turn is given up.
    pub(crate) async fn take(&self, name: &str) -> Place {
        match self.queues.of(name, || Semaphore::new(self.at_once)).acquire_owned().await {
            Ok(permit) => Place(permit),
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn two_contend_and_the_third_waits_for_one_to_leave() {
        let places = Places::new(2);
        let first = places.take("/a").await;
        let _second = places.take("/a").await;
        assert!(places.take("/b").now_or_never().is_some(), "another name has places of its own");
        let mut third = Box::pin(places.take("/a"));
        assert!((&mut third).now_or_never().is_none());
        let mut fourth = Box::pin(places.take("/a"));
        assert!((&mut fourth).now_or_never().is_none());
        drop(first);
        assert!((&mut fourth).now_or_never().is_none(), "the third came first");
        assert!((&mut third).now_or_never().is_some());
    }
}
