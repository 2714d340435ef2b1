//! One shared value per type.
//!
//! A client keeps shared state for every kind of lock this way without knowing any of them: each kind names its own type.

use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

/// One value of each type that was asked for.
///
/// ```
/// use oversell_lock::local::{ByType, Mutexes};
///
/// let shared = ByType::default();
/// let (one, other) = (shared.of::<Mutexes<i64>>(), shared.of::<Mutexes<i64>>());
/// assert!(std::sync::Arc::ptr_eq(&one, &other));
/// ```
#[derive(Default)]
pub struct ByType(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl ByType {
    /// Returns the value of the type, made at the first call; `T::default` must not call this again, which would block.
    #[must_use]
    pub fn of<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut values = self.0.lock();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        match Arc::clone(value).downcast() {
            Ok(value) => value,
            Err(_) => unreachable!("filed under its own type"),
        }
    }
}

impl std::fmt::Debug for ByType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ByType").field(&self.0.lock().len()).finish()
    }
}
