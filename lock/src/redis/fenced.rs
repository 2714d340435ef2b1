//! The lock with a token: each hold has a number that is higher than all before it, for the resource to check.
//!
//! 1. Take it, as [`RedisLock`](super::RedisLock) does, in the same hash; the same script draws the token. A hold that is
//!    handed over, or taken again, draws one too.
//! 2. Show the token with every write ([`Guard::fence`](crate::Guard::fence)); the resource refuses one that is lower than what it has seen.
//! 3. Give it back. The counter stays for ever: a counter that ended would begin anew below.
//!
//! What it survives: with a resource that checks, everything, a holder that is paused beyond its lease included. A Redis
//! that loses the counter hands out tokens that are refused, until [`RedisFencedLock::lift`] has told it what the
//! resource has seen. **What breaks it**: a resource that does not check.
//!
//! Formats: `RFencedLock` of Redisson 3.20 and later. Next to read: `contend.rs`.

use super::{
    client::{Line, RedisClient},
    contend::{Contender, handle},
    terms::Asks,
};
use crate::{Fence, LockError};
use std::sync::Arc;

/// A handle on one lock in Redis whose guards have a fencing token.
#[derive(Debug, Clone)]
pub struct RedisFencedLock(Contender);

impl RedisFencedLock {
    pub(super) fn new(client: RedisClient, line: Arc<Line>) -> Self {
        Self(Contender { client, line, asks: Asks { fenced: true, ..Asks::plain() } })
    }

    /// Lifts the counter of tokens to at least `seen`, so that the next token is above it: for a resource that has seen
    /// more than the counter says, because Redis has lost it.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] where Redis is down or did not answer; it may have been lifted.
    ///
    /// # Cancel safety
    ///
    /// It may have been lifted or not; it may be called again.
    pub async fn lift(&self, seen: Fence) -> Result<(), LockError> {
        self.0.client.lift_token(&self.0.line, seen).await
    }
}

handle!(RedisFencedLock);
