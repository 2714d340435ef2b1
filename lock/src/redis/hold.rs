//! One hold of a lock: it has a keeper of its own, and a [`Place`] that it shares with its owner's other holds.
//!
//! 1. A task keeps it ([`lease`]).
//! 2. It ends in any order with the others: it gives back one of what Redis counts, and the last one all
//!    ([`place`](super::place)). One that is lost gives nothing back.
//!
//! What it survives: a holder that is dropped anywhere (the value gives itself back). **What breaks it**: a process that
//! is stopped beyond its lease.
//!
//! Next to read: `place.rs`.

use super::{
    client::{Holds, RedisClient},
    lease::{self, Held},
    place::Place,
    terms::Taken,
};
use crate::{Guard, LockError};
use std::sync::Arc;
use tokio::runtime::Handle;

/// A hold of the lock. Dropping it gives it back in the background.
#[derive(Debug)]
pub(super) struct Hold {
    place: Arc<Place>,
    taken: Taken,
    /// It has left its place: lost, or given back.
    over: bool,
}

impl Hold {
    /// One that its place knows of.
    pub(super) fn new(place: Arc<Place>, taken: Taken) -> Self {
        Self { place, taken, over: false }
    }

    /// One more hold of the owner that has `place`.
    pub(super) fn again(place: Arc<Place>, taken: Taken) -> Self {
        // The others may have been given back while this one was taken: then it is the first of a new place.
        let place = if place.join() { place } else { Place::new(&place.client, &place.line, &taken, None) };
        Self::new(place, taken)
    }

    /// A guard for it, and a task that keeps it until its holder gives it back.
    pub(super) fn guarded(self, client: &RedisClient) -> Guard {
        let (guard, keeper) = Guard::new(self.name(), self.taken.fence);
        let (lease, leased) = (self.taken.terms.lease, self.taken.leased);
        client.spawn(lease::keep(self, lease, leased, keeper));
        guard
    }
}

impl Held for Hold {
    fn name(&self) -> &str {
        &self.place.line.name
    }

    async fn renew(&self) -> Result<bool, LockError> {
        self.place.client.renew(&self.place.line, &self.taken.terms).await
    }

    async fn revoked(&self) {
        self.place.revoked().await;
    }

    fn on_loss(&mut self) {
        self.over = true;
        self.place.lose();
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        if std::mem::replace(&mut self.over, true) {
            return Err(self.place.lost());
        }
        let place = &self.place;
        if let Some(last) = place.leave() {
            return place.give_back(last).await;
        }
        match place.client.release(&place.line, &self.taken.terms, Holds::One).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(place.lost()),
            Err(error) => {
                place.doubt();
                Err(error)
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.over || Handle::try_current().is_err() {
            return;
        }
        match self.place.leave() {
            Some(last) => last.abandon(&self.place),
            None => self.place.doubt(),
        }
    }
}
