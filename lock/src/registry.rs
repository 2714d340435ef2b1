//! Values that all handles of one name share in this process, while any is used.
//!
//! 1. The first caller makes the name's value; later callers share it while it is used.
//! 2. The value keeps its [`Registration`], which removes the name from the map when the value is dropped.
//!
//! A name may be requested again while its old value is being dropped: the old registration leaves the new value alone.

use parking_lot::ReentrantMutex;
use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Weak},
};

/// The capacity, in entries, below which a map is never shrunk, so that it does not shrink and grow for every name.
const MIN_CAPACITY: usize = 64;

/// Weak references to values by name: a value lives while somebody uses it, and its entry goes with it.
#[derive(Debug)]
pub(crate) struct Registry<K, V>(Arc<Entries<K, V>>);

/// The entries of a registry by key. The mutex can be locked again by the thread that makes a value, which drops its registration
/// if it panics.
type Entries<K, V> = ReentrantMutex<RefCell<HashMap<K, Weak<V>>>>;

/// Removes a value's entry from its registry when it is dropped, which is when the value is.
pub(crate) struct Registration(Option<Box<dyn FnOnce() + Send + Sync>>);

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, V> Registry<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Returns the value of `key`, and makes it if there is none. A new value must keep its registration. `make` runs under the
    /// map's mutex: callers with other keys wait for it.
    pub(crate) fn get_or_make(&self, key: &K, make: impl FnOnce(Registration) -> V) -> Arc<V> {
        let entries = self.0.lock();
        let existing = entries.borrow().get(key).and_then(Weak::upgrade);
        existing.unwrap_or_else(|| {
            let value = Arc::new(make(self.register(key.clone())));
            entries.borrow_mut().insert(key.clone(), Arc::downgrade(&value));
            value
        })
    }

    /// How many names are used.
    #[cfg_attr(not(any(test, feature = "redis")), expect(dead_code, reason = "only Redis tells it"))]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().borrow().len()
    }

    /// Makes the registration whose drop removes the entry of `key`.
    fn register(&self, key: K) -> Registration {
        let entries = Arc::downgrade(&self.0);
        Registration(Some(Box::new(move || {
            if let Some(entries) = entries.upgrade() {
                remove_if_unused(&mut entries.lock().borrow_mut(), &key);
            }
        })))
    }
}

/// Removes the name, unless it has a new value; shrinks a map that has become nearly empty.
fn remove_if_unused<K: Eq + Hash, V>(entries: &mut HashMap<K, Weak<V>>, key: &K) {
    if entries.get(key).is_some_and(|value| value.strong_count() == 0) {
        entries.remove(key);
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to(MIN_CAPACITY.max(entries.len() * 2));
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(unregister) = self.0.take() {
            unregister();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registration")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[derive(Debug)]
    struct Value(u32, Registration);

    fn value(n: u32) -> impl FnOnce(Registration) -> Value {
        move |registration| Value(n, registration)
    }

    #[test]
    fn one_name_has_one_value_and_unused_names_are_forgotten() {
        let registry = Registry::<u32, Value>::default();
        let mut kept: Vec<_> = (0..100_000).map(|n| registry.get_or_make(&n, value(n))).collect();
        assert!(Arc::ptr_eq(&kept[7], &registry.get_or_make(&7, value(8))));
        assert_eq!(registry.len(), 100_000);
        kept.truncate(10);
        assert_eq!(registry.len(), 10);
        assert_eq!(registry.get_or_make(&7, value(8)).0, 7);
        kept.clear();
        assert_eq!(registry.len(), 0);
        assert!(registry.0.lock().borrow().capacity() <= 4 * MIN_CAPACITY, "the map itself keeps its memory");
    }

    #[test]
    fn an_old_value_that_goes_leaves_the_new_one_alone() {
        let registry = Registry::<u32, Value>::default();
        let old = registry.get_or_make(&7, value(1));
        // The old value has no user left, and its registration is dropped only after the next call.
        let Value(_, registration) = Arc::into_inner(old).unwrap();
        let new = registry.get_or_make(&7, value(2));
        drop(registration);
        assert!(Arc::ptr_eq(&new, &registry.get_or_make(&7, value(3))));
    }

    #[test]
    fn a_value_whose_making_panics_can_be_made_later() {
        let registry = Registry::<u32, Value>::default();
        let panic = catch_unwind(AssertUnwindSafe(|| registry.get_or_make(&7, |_registration| panic!("on purpose"))));
        panic.unwrap_err();
        assert_eq!(registry.get_or_make(&7, value(1)).0, 1);
    }
}
