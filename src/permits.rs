//! Permits that an instance gives out, so that it does no more of one kind at once than it can.

use std::{marker::PhantomData, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// `MOST` permits; `Of` tells those of one kind from those of others.
#[derive(Debug)]
pub(crate) struct Permits<Of, const MOST: usize>(pub(crate) Arc<Semaphore>, PhantomData<fn() -> Of>);

impl<Of, const MOST: usize> Default for Permits<Of, MOST> {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)), PhantomData)
    }
}

impl<Of, const MOST: usize> Permits<Of, MOST> {
    /// A permit, given back when it is dropped; `None` if none is left.
    pub(crate) fn try_take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}
