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
    contend::{Contender, handle},
    terms::Asks,
};
use std::sync::Arc;

/// A handle on one lock in Redis. Each acquire is an owner of its own, and a second one waits for the first to end; one
/// that is given an [owner](Self::owner) is re-entrant.
#[derive(Debug, Clone)]
pub struct RedisLock(Contender);

impl RedisLock {
    pub(super) fn new(client: RedisClient, line: Arc<Line>) -> Self {
        Self(Contender { client, line, asks: Asks::plain() })
    }
}

handle!(RedisLock);
