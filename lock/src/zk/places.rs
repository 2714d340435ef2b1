//! The queue before ZooKeeper's: of this process's contenders for one path, two at a time stand in ZooKeeper's.
//!
//! With a node for each of 1,000 waiting requests, every hand-off would list 1,000 children. With one place per
//! process, the next contender's node would be made only after the last one's is deleted, while nobody works.
//! With two, it is made while the first is inside. Places are given in order of arrival, so a process's own
//! contenders stay first come, first served; between processes the turns are fairer than with a node each, since a
//! process with many requests does not push the others back.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const AT_ONCE: usize = 2;

/// The local queues by path. One that nobody uses takes no memory for long.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<String, Weak<Semaphore>>>);

/// Leave to stand in ZooKeeper's queue, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Places {
    /// A place, waiting in order of arrival.
    ///
    /// # Cancel safety
    ///
    /// Safe: the turn is given up.
    pub(super) async fn take(&self, path: &str) -> Place {
        match self.of(path).acquire_owned().await {
            Ok(permit) => Place(permit),
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    fn of(&self, path: &str) -> Arc<Semaphore> {
        let mut all = self.0.lock();
        if let Some(places) = all.get(path).and_then(Weak::upgrade) {
            return places;
        }
        all.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        all.insert(path.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn two_stand_in_the_queue_and_the_third_waits_for_one_to_leave() {
        let places = Places::default();
        let first = places.take("/a").await;
        let _second = places.take("/a").await;
        assert!(places.take("/b").now_or_never().is_some(), "another path has places of its own");
        let mut third = Box::pin(places.take("/a"));
        assert!((&mut third).now_or_never().is_none());
        let mut fourth = Box::pin(places.take("/a"));
        assert!((&mut fourth).now_or_never().is_none());
        drop(first);
        assert!((&mut fourth).now_or_never().is_none(), "the third came first");
        assert!((&mut third).now_or_never().is_some());
    }

    #[tokio::test]
    async fn paths_that_nobody_uses_are_forgotten() {
        let places = Places::default();
        for n in 0..100 {
            drop(places.take(&format!("/{n}")).await);
        }
        assert!(places.0.lock().len() <= 1);
    }
}
