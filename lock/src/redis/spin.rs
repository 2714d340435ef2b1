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
    contend::{Contender, handle},
    terms::Asks,
};
use std::sync::Arc;

/// A handle on one lock in Redis that waits by asking again.
#[derive(Debug, Clone)]
pub struct RedisSpinLock(Contender);

impl RedisSpinLock {
    pub(super) fn new(client: RedisClient, line: Arc<Line>) -> Self {
        Self(Contender { client, line, asks: Asks { spins: true, ..Asks::plain() } })
    }
}

handle!(RedisSpinLock);
