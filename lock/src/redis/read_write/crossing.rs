//! What all handles of one read-write lock share in this process: one line of waiters, and who is inside by name.
//!
//! 1. Readers and writers wait in one line, in order of arrival; only its head asks Redis. It stays at the head until it
//!    has the lock, and not longer: readers that follow each other go in one after the other and are inside together.
//! 2. A reader that finds nobody in the line asks at once: readers among themselves never wait for each other.
//! 3. An owner that is inside already asks beside the line, else it would wait for one who waits for it.
//!
//! What it survives: a waiter that goes away at any point. **What breaks it**: nothing; but it is fair only inside this
//! process.
//!
//! Next to read: `hold.rs`.

use crate::{
    Owner,
    redis::{client::RedisClient, script::prefixed, station::Station},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

/// All read-write locks of one process.
#[derive(Debug, Default)]
pub(in crate::redis) struct Crossings(Mutex<HashMap<String, Weak<Crossing>>>);

/// One read-write lock in this process.
#[derive(Debug)]
pub(super) struct Crossing {
    pub(super) name: String,
    pub(super) station: Arc<Station>,
    waiting: AtomicUsize,
    inside: Mutex<HashMap<Owner, usize>>,
}

/// A place in the line, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Waits<'a>(&'a Crossing);

/// An owner inside, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Inside(Arc<Crossing>, Owner);

impl Crossings {
    pub(super) fn at(&self, client: &RedisClient, name: &str) -> Arc<Crossing> {
        let name = client.stations().key(name);
        let mut all = self.0.lock();
        if let Some(crossing) = all.get(&name).and_then(Weak::upgrade) {
            return crossing;
        }
        all.retain(|_, crossing| crossing.strong_count() > 0);
        let crossing = Arc::new(Crossing {
            station: client.stations().at(prefixed("redisson_rwlock", &name)),
            waiting: AtomicUsize::new(0),
            inside: Mutex::default(),
            name: name.clone(),
        });
        all.insert(name, Arc::downgrade(&crossing));
        crossing
    }
}

impl Crossing {
    /// Counts one who waits.
    pub(super) fn wait(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Waits(self)
    }

    /// Whether the line is empty.
    pub(super) fn nobody_waits(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Counts one who is inside.
    pub(super) fn enter(self: &Arc<Self>, owner: Owner) -> Inside {
        *self.inside.lock().entry(owner).or_default() += 1;
        Inside(Arc::clone(self), owner)
    }

    /// Whether the owner is inside, as far as this process knows.
    pub(super) fn is_inside(&self, owner: Owner) -> bool {
        self.inside.lock().contains_key(&owner)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut inside = self.0.inside.lock();
        if let Some(holds) = inside.get_mut(&self.1) {
            *holds -= 1;
            if *holds == 0 {
                inside.remove(&self.1);
            }
        }
    }
}
