//! A lease: how long a server keeps a hold, and how it is renewed.
//!
//! 1. A watchdog renews the lease every third; a fixed lease runs out.
//! 2. The hold is sure for the lease less a twentieth, from when the last answered command was *sent*.
//!
//! Next to read: `sure_until.rs`.

use crate::{
    LockError, MAX_DURATION,
    sure_until::{SureUntil, sure_part},
};
use std::{future::Future, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The pause before a failed renewal is repeated: short, so that the rest of a lease of seconds allows many tries.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The shortest time limit of a renewal, however short the lease is: a busy machine is no broken connection.
const MIN_RENEWAL_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a server keeps a hold, 1 ms to ten years in whole milliseconds, and whether that is renewed while the holder lives.
///
/// ```
/// use oversell_lock::Lease;
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// assert_eq!(Lease::Watchdog(minute).duration(), Lease::Fixed(minute).duration());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// This long, renewed every third of it while the holder lives.
    Watchdog(Duration),
    /// This long, without renewal.
    Fixed(Duration),
}

impl Lease {
    /// Returns how long it lasts from its start or its last renewal.
    #[must_use]
    pub fn duration(self) -> Duration {
        match self {
            Self::Watchdog(duration) | Self::Fixed(duration) => duration,
        }
    }

    /// Returns its duration in whole milliseconds, rounded down.
    #[cfg(any(feature = "mysql", feature = "redis"))]
    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.duration().as_millis()).unwrap_or(u64::MAX)
    }

    /// Fails with [`LockError::Invalid`] for the lock `name` unless it lasts 1 ms to ten years.
    #[cfg_attr(not(any(feature = "mysql", feature = "redis")), expect(dead_code, reason = "etcd's has its own rule"))]
    pub(crate) fn check(self, name: &str) -> Result<(), LockError> {
        if (Duration::from_millis(1)..=MAX_DURATION).contains(&self.duration()) {
            return Ok(());
        }
        Err(LockError::invalid(name, "its lease must be 1 ms to ten years"))
    }

    /// How long a renewal may take: a third of the lease, so that another one by a new connection is in time, but at least
    /// [`MIN_RENEWAL_TIMEOUT`].
    pub(crate) fn renewal_timeout(self) -> Duration {
        (self.duration() / 3).max(MIN_RENEWAL_TIMEOUT)
    }

    /// Whether the sure part of a lease that began at `lease_start` is over: another may have the lock by now.
    #[cfg_attr(not(any(feature = "mysql", feature = "redis")), expect(dead_code, reason = "etcd asks `SureUntil`"))]
    pub(crate) fn is_unsure(self, lease_start: Instant) -> bool {
        Instant::now() >= self.sure_end(lease_start)
    }

    /// Returns the end of the time in which surely nobody else has the lock: 95 % of the lease after `lease_start`.
    pub(crate) fn sure_end(self, lease_start: Instant) -> Instant {
        lease_start + sure_part(self.duration())
    }

    /// Renews every third of the lease, and at once after each disconnect; retries a failure. Completes only when the server
    /// says that the hold is gone, and never for a fixed lease, which is not renewed. `lease_start` is when the command that
    /// began the lease was sent; each renewal moves `sure_until`. `renewed_late` is called after a renewal that came when
    /// less than half of the lease was left, with the time for which the hold was still sure.
    ///
    /// # Cancel safety
    ///
    /// A renewal may have been carried out, without its effect on `sure_until`.
    pub(crate) async fn renew_until_gone<F, E>(
        self,
        lease_start: Instant,
        sure_until: &SureUntil,
        renewed_late: impl Fn(Duration),
        mut disconnects: Option<watch::Receiver<()>>,
        renew: impl Fn() -> F,
    ) where
        F: Future<Output = Result<bool, E>>,
    {
        let Self::Watchdog(length) = self else {
            return std::future::pending().await;
        };
        let mut next = lease_start + length / 3;
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                Some(()) = next_disconnect(&mut disconnects) => {}
            }
            let sent = Instant::now();
            match renew().await {
                Ok(true) => {
                    let left = sure_until.time_left();
                    if sure_until.extend(self.sure_end(sent)) && left < length / 2 {
                        renewed_late(left);
                    }
                    next = sent + length / 3;
                }
                Ok(false) => return,
                Err(_) => next = Instant::now() + RETRY_PAUSE,
            }
        }
    }
}

/// Waits for the next disconnect; `None` at once if there can be none: without a receiver, or once its sender is gone.
async fn next_disconnect(disconnects: &mut Option<watch::Receiver<()>>) -> Option<()> {
    disconnects.as_mut()?.changed().await.ok()
}

/// The builder methods `owner` and `lease` of a handle, given the fields for both.
#[cfg(any(feature = "mysql", feature = "redis"))]
macro_rules! owner_and_lease {
    ($($lock:ident: $($owner:tt).+, $($lease:tt).+;)+) => {$(
        impl $lock {
            /// Takes the lock as `owner`, which may take it again while it holds it: ahead of all waiters, and released in
            /// any order. Tasks of one owner enter one after the other. Without an owner, each acquire is its own. An
            /// owner belongs to the client or pool that made it (`owner()`).
            #[must_use]
            pub fn owner(mut self, owner: $crate::Owner) -> Self {
                self.$($owner).+ = Some(owner);
                self
            }

            /// Takes the lock for `lease`, of 1 ms to ten years. The default is the client's, or 30 s in a table, renewed
            /// every third. A lease that another guard of the owner relies on is never shortened.
            #[must_use]
            pub fn lease(mut self, lease: $crate::Lease) -> Self {
                self.$($lease).+ = lease;
                self
            }
        }
    )+};
}
#[cfg(any(feature = "mysql", feature = "redis"))]
pub(crate) use owner_and_lease;
