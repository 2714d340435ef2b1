//! The lock that nobody tells of: who waits asks again, after pauses that grow.
//!
//! 1. Take it, as [`RedisLock`](super::RedisLock) does, in the same hash: the two exclude each other.
//! 2. Where another has it, pause for 1 to 2 ms, then twice as long, up to 128 ms, and ask again.
//! 3. Give it back; no message is sent. Who waits for a `RedisLock` of this name finds out by its timed re-check.
//!
//! It is for locks with so many names that a subscription for each would cost more than asking again. In one process
//! only the head of the line asks.
//!
//! What it survives and what breaks it: as `lock.rs`. Formats: `RSpinLock` of Redisson 3.15 and later. Next to read:
//! `contend.rs`.

use super::{
    client::{Line, RedisClient},
    contend::Contender,
    lease::Lease,
    terms::Asks,
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};

/// A handle on one lock in Redis that waits by asking again.
#[derive(Debug, Clone)]
pub struct RedisSpinLock(Contender);

impl RedisSpinLock {
    pub(super) fn new(client: RedisClient, line: Arc<Line>) -> Self {
        Self(Contender { client, line, asks: Asks { spins: true, ..Asks::plain() } })
    }

    /// Takes it as `owner`, which may take it again while it has it: past everybody who waits, and as often as it gives
    /// it back, in any order. An owner belongs to one client ([`RedisClient::owner`]).
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.0.asks.owner = Some(owner);
        self
    }

    /// Takes it for `lease`. Without this it is the client's, renewed every third. A lease that an owner's other hold
    /// relies on is never made shorter.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.0.asks.lease = Some(lease);
        self
    }
}

impl Lock for RedisSpinLock {
    fn name(&self) -> &str {
        &self.0.line.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        self.0.acquire(wait).await
    }
}
