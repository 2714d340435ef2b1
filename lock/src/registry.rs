//! What the handles of one name share in this process, as long as somebody uses it.

use parking_lot::Mutex;
use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
};

/// So many entries are kept before the first sweep.
const FIRST_SWEEP: usize = 64;

/// Values by name. A value that nobody uses is forgotten, at the latest when the map has doubled since the last sweep.
#[derive(Debug)]
pub(crate) struct Registry<K, V>(Mutex<Entries<K, V>>);

#[derive(Debug)]
struct Entries<K, V> {
    values: HashMap<K, Weak<V>>,
    sweep_at: usize,
}

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Entries { values: HashMap::new(), sweep_at: FIRST_SWEEP }))
    }
}

impl<K: Eq + Hash, V> Registry<K, V> {
    /// The value of `key`, made where nobody uses one.
    pub(crate) fn of<Q>(&self, key: &Q, make: impl FnOnce() -> V) -> Arc<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut entries = self.0.lock();
        if let Some(value) = entries.values.get(key).and_then(Weak::upgrade) {
            return value;
        }
        if entries.values.len() >= entries.sweep_at {
            entries.values.retain(|_, value| value.strong_count() > 0);
            entries.sweep_at = FIRST_SWEEP.max(entries.values.len() * 2);
        }
        let value = Arc::new(make());
        entries.values.insert(key.to_owned(), Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_one_name_share_a_value_and_names_that_nobody_uses_are_forgotten() {
        let registry = Registry::<u32, u32>::default();
        let kept: Vec<_> = (0..1000).map(|n| registry.of(&n, || n)).collect();
        assert!(Arc::ptr_eq(&kept[7], &registry.of(&7, || 8)));
        for n in 1000..100_000 {
            registry.of(&n, || n);
        }
        assert!(registry.0.lock().values.len() <= 2 * kept.len());
        assert!(Arc::ptr_eq(&kept[7], &registry.of(&7, || 8)));
    }
}
