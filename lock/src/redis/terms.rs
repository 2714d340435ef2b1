//! What one acquire asks for: for whom, for how long, and how it waits.

use super::{client::RedisClient, lease::Lease};
use crate::{Fence, Owner};
use std::time::Duration;
use tokio::time::Instant;

/// One acquire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) owner: Owner,
    pub(super) lease: Lease,
    /// Draws a fencing token.
    pub(super) fenced: bool,
    /// Waits by asking again, and tells nobody when it is free.
    pub(super) spins: bool,
}

/// An acquire that has its lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) terms: Terms,
    pub(super) fence: Option<Fence>,
    /// When the command was sent that began the lease.
    pub(super) leased: Instant,
}

/// What a handle asks for each time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asks {
    /// None: each acquire is an owner of its own.
    pub(super) owner: Option<Owner>,
    /// None: the client's.
    pub(super) lease: Option<Lease>,
    pub(super) fenced: bool,
    pub(super) spins: bool,
}

impl Asks {
    pub(super) fn plain() -> Self {
        Self { owner: None, lease: None, fenced: false, spins: false }
    }

    /// What the next acquire asks for.
    pub(super) fn terms(&self, client: &RedisClient) -> Terms {
        Terms {
            owner: self.owner.unwrap_or_else(|| client.owner()),
            lease: self.lease.unwrap_or_else(|| client.lease()),
            fenced: self.fenced,
            spins: self.spins,
        }
    }
}

/// The pauses of one that asks again: each twice as long as the last, and random from a half of that on.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    const FIRST: Duration = Duration::from_millis(2);
    const LONGEST: Duration = Duration::from_millis(128);

    pub(super) fn new() -> Self {
        Self(Self::FIRST)
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.0 = (self.0 * 2).min(Self::LONGEST);
        pause
    }
}
