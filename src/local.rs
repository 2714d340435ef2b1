//! What ends at this process's wall: each kind of state that a strategy or a lesson keeps here, found by its type.
//!
//! The clients in [`Ctx`](crate::ctx::Ctx) are for all; a mutex of §1.5 or a queue of requests that go together belongs
//! to one strategy alone, which names its type in its own file.

use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

/// One value of each type that was asked for.
#[derive(Default)]
pub struct Local(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Local {
    /// This process's value of the type, made at the first call.
    ///
    /// # Panics
    ///
    /// Never: what is filed under a type is of that type.
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

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Local").field(&self.0.lock().len()).finish()
    }
}
