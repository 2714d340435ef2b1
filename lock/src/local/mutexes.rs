//! One in-process mutex for each key: §1.5's `synchronized`, and as blind to other processes.
//!
//! What it survives: a holder that panics or is dropped. **What breaks it**: a second instance.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Mutexes by key. A key that nobody holds or waits for takes no memory for long.
#[derive(Debug)]
pub struct Mutexes<K>(Mutex<HashMap<K, Weak<AsyncMutex<()>>>>);

impl<K> Default for Mutexes<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> Mutexes<K> {
    /// Locks `key`, waiting in order of arrival at most `wait`; `None` where another held it all that time.
    ///
    /// # Cancel safety
    ///
    /// Safe: the place in the queue is given up.
    pub async fn lock(&self, key: &K, wait: Duration) -> Option<OwnedMutexGuard<()>> {
        let mutex = self.of(key);
        tokio::time::timeout(wait, mutex.lock_owned()).await.ok()
    }

    fn of(&self, key: &K) -> Arc<AsyncMutex<()>> {
        let mut all = self.0.lock();
        if let Some(mutex) = all.get(key).and_then(Weak::upgrade) {
            return mutex;
        }
        all.retain(|_, mutex| mutex.strong_count() > 0);
        let mutex = Arc::new(AsyncMutex::new(()));
        all.insert(key.clone(), Arc::downgrade(&mutex));
        mutex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_key_excludes_and_another_does_not() {
        let mutexes = Mutexes::default();
        let held = mutexes.lock(&1, Duration::ZERO).await.expect("free");
        assert!(mutexes.lock(&1, Duration::ZERO).await.is_none());
        assert!(mutexes.lock(&2, Duration::ZERO).await.is_some());
        drop(held);
        assert!(mutexes.lock(&1, Duration::ZERO).await.is_some());
    }

    #[tokio::test]
    async fn keys_that_nobody_uses_are_forgotten() {
        let mutexes = Mutexes::default();
        for key in 0..100 {
            drop(mutexes.lock(&key, Duration::ZERO).await);
        }
        assert!(mutexes.0.lock().len() <= 1);
    }
}
