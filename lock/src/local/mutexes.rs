//! One mutex per key, within this process.

use crate::registry::{Registration, Registry};
use std::{hash::Hash, time::Duration};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Mutexes by key. A key that nobody holds or waits for takes no memory.
///
/// # Survives
///
/// A holder that panics or is dropped.
///
/// # What breaks it
///
/// A second process: it does not see these mutexes.
///
/// # Example
///
/// ```
/// use oversell_lock::local::Mutexes;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let products = Mutexes::<i64>::default();
/// let held = products.lock(&7, Duration::ZERO).await;
/// assert!(held.is_some() && products.lock(&7, Duration::ZERO).await.is_none());
/// # }
/// ```
#[derive(Debug)]
pub struct Mutexes<K>(Registry<K, Mutex<Registration>>);

/// A key that is held. Dropping it unlocks the key.
#[derive(Debug)]
#[must_use = "the key is unlocked as soon as this is dropped"]
pub struct MutexGuard(#[expect(dead_code, reason = "kept for its drop")] OwnedMutexGuard<Registration>);

impl<K> Default for Mutexes<K> {
    fn default() -> Self {
        Self(Registry::default())
    }
}

impl<K: Eq + Hash + Clone + Send + Sync + 'static> Mutexes<K> {
    /// Locks `key`, waiting in order of arrival at most `wait`; `None` if others held it all that time.
    ///
    /// # Cancel safety
    ///
    /// Safe: the place in the queue is given up.
    pub async fn lock(&self, key: &K, wait: Duration) -> Option<MutexGuard> {
        let mutex = self.0.get_or_make(key, Mutex::new);
        tokio::time::timeout(wait, mutex.lock_owned()).await.ok().map(MutexGuard)
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
}
