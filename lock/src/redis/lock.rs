//! The lock of Redisson: a hash with its owner, a lease that is renewed, a channel that tells when it is free.
//!
//! 1. Take it: one script looks and writes the owner ([`contend`](super::contend)).
//! 2. A task renews the lease every third, and tells the holder if it is lost ([`lease`](super::lease)).
//! 3. Give it back: one script looks at the owner, deletes, and wakes who waits; or hands it to the next of this process.
//!
//! What it survives: a holder that dies (the lease ends), a message that is lost (the timed re-check), a caller that
//! goes away at any point, a command that gets no answer. **What breaks it**: a holder that is paused beyond its lease
//! and then writes; a primary that fails before its replica has the key.
//!
//! Formats: `RLock` of Redisson 3 and 4. Next to read: `contend.rs`.

use super::{
    client::{Line, RedisClient},
    contend::Contender,
    lease::Lease,
    terms::Asks,
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};

/// A handle on one lock in Redis. Each acquire is an owner of its own, and a second one waits for the first to end; one
/// that is given an [owner](Self::owner) is re-entrant.
#[derive(Debug, Clone)]
pub struct RedisLock(Contender);

impl RedisLock {
    pub(super) fn new(client: RedisClient, line: Arc<Line>) -> Self {
        Self(Contender { client, line, asks: Asks::plain() })
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

impl Lock for RedisLock {
    fn name(&self) -> &str {
        &self.0.line.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        self.0.acquire(wait).await
    }
}
