//! A lease: for how long a server keeps a hold, and how it is renewed.
//!
//! 1. With a watchdog, the lease is renewed every third; with a fixed lease it runs out when it runs out.
//! 2. Whatever the server does, the hold is sure for the lease less a twentieth, from when the last command was *sent*
//!    that the server has answered.
//!
//! What it survives: a renewal that gets no answer (tried again while the lease lasts). **What breaks it**: a process
//! that is stopped beyond its lease; two clocks of which one runs a twentieth faster.
//!
//! Next to read: `sure_until.rs`, then `redis/hold.rs`, `mysql/lease_lock.rs`.

use crate::{
    FOR_EVER, LockError,
    sure_until::{SureUntil, sure},
};
use std::{future::Future, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// How long a hold lasts: 1 ms to ten years, of which the whole milliseconds count.
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
    /// For this long, renewed every third of it while the holder lives.
    Watchdog(Duration),
    /// For this long, and then it is over, whatever the holder does.
    Fixed(Duration),
}

impl Lease {
    /// Returns how long it lasts from its beginning or its last renewal.
    #[must_use]
    pub fn duration(self) -> Duration {
        match self {
            Self::Watchdog(duration) | Self::Fixed(duration) => duration,
        }
    }

    /// The same in milliseconds, as the servers want it.
    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.duration().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a server can keep it.
    pub(crate) fn check(self, name: &str) -> Result<(), LockError> {
        if (Duration::from_millis(1)..=FOR_EVER).contains(&self.duration()) {
            return Ok(());
        }
        Err(LockError::invalid(
            name,
            "its lease must be 1 ms to ten years",
        ))
    }

    /// Whether one that began at `leased` is not surely held any more.
    pub(crate) fn is_over(self, leased: Instant) -> bool {
        Instant::now() >= self.sure(leased)
    }

    /// Until when nobody else can have it.
    pub(crate) fn sure(self, leased: Instant) -> Instant {
        leased + sure(self.duration())
    }

    /// Renews every third, and at once after each of `disconnects`, until the server says that it is another's by now. A fixed
    /// lease is left alone. `leased` is when the command was sent that began the lease.
    ///
    /// # Cancel safety
    ///
    /// As the renewal's: it may have been carried out.
    pub(crate) async fn renewed<F, E>(
        self,
        leased: Instant,
        sure_until: &SureUntil,
        mut disconnects: Option<watch::Receiver<()>>,
        renew: impl Fn() -> F,
    ) where
        F: Future<Output = Result<bool, E>>,
    {
        let Self::Watchdog(length) = self else {
            return std::future::pending().await;
        };
        let mut next = leased + length / 3;
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                Some(()) = cut(&mut disconnects) => {}
            }
            let sent = Instant::now();
            match renew().await {
                Ok(true) => {
                    sure_until.extend(self.sure(sent));
                    next = sent + length / 3;
                }
                Ok(false) => return,
                Err(_) => next = Instant::now() + RETRY_PAUSE,
            }
        }
    }
}

async fn cut(disconnects: &mut Option<watch::Receiver<()>>) -> Option<()> {
    disconnects.as_mut()?.changed().await.ok()
}

/// Builders of the handles that have an owner and a lease, each with the places of the two.
macro_rules! owner_and_lease {
    ($($lock:ident: $($owner:tt).+, $($lease:tt).+;)+) => {$(
        impl $lock {
            /// Takes it as `owner`, which may take it again while it has it: ahead of all waiters, and as often as it
            /// gives it back, in any order. Tasks of one owner come in one after the other. Without this each acquire is an
            /// owner of its own. An owner belongs to one client or pool, which makes it (`owner()`).
            #[must_use]
            pub fn owner(mut self, owner: $crate::Owner) -> Self {
                self.$($owner).+ = Some(owner);
                self
            }

            /// Takes it for `lease`, of 1 ms to ten years. Without this it is the client's, and 30 s in a table, renewed
            /// every third. A lease that an owner's other guard relies on is never made shorter.
            #[must_use]
            pub fn lease(mut self, lease: $crate::Lease) -> Self {
                self.$($lease).+ = lease;
                self
            }
        }
    )+};
}
pub(crate) use owner_and_lease;
