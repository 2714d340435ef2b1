//! The keeper of every hold with a lease: renews it, tells of its loss, gives it back.
//!
//! 1. With a watchdog, the lease is renewed every third; with a fixed lease it runs out when it runs out.
//! 2. The holder is told that it is lost when the lease has run out, a twentieth before the server's end of it, or when
//!    the server says that it is another's.
//! 3. The same task gives it back, so no renewal outlives its lock.
//!
//! What it survives: a renewal that gets no answer (tried again while the lease lasts). **What breaks it**: a process
//! that is stopped beyond its lease.
//!
//! Next to read: `redis/hold.rs`, `mysql/lease_lock.rs`.

use crate::{Keeper, LockError};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep_until, timeout_at};

const RETRY: Duration = Duration::from_millis(100);

/// How long a hold lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// For this long, renewed every third of it while the holder lives.
    Watchdog(Duration),
    /// For this long, and then it is over, whatever the holder does.
    Fixed(Duration),
}

impl Lease {
    /// How long it lasts from its beginning or its last renewal.
    #[must_use]
    pub fn duration(self) -> Duration {
        match self {
            Self::Watchdog(duration) | Self::Fixed(duration) => duration,
        }
    }

    /// The same in milliseconds, as the servers want it; Redis knows none of less than one.
    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.duration().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Until when nobody else can have it: the lease less a twentieth, for clocks that run at different speeds.
    fn sure(self, leased: Instant) -> Instant {
        leased + self.duration().mul_f64(0.95)
    }
}

/// Something that is held under a lease.
pub(crate) trait Held: Send + 'static {
    /// The lock's name, for errors.
    fn name(&self) -> &str;

    /// Begins the lease anew; `false` where it is another's by now.
    fn renew(&self) -> impl Future<Output = Result<bool, LockError>> + Send;

    /// Completes where it is found out elsewhere that it is lost.
    fn revoked(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Nobody can rely on it any more, and its holder is told: who waits behind it in this process may try.
    fn on_loss(&mut self) {}

    /// Gives it back. A value that is dropped without it gives itself back in the background.
    fn give_back(self) -> impl Future<Output = Result<(), LockError>> + Send;
}

/// Keeps what is held until its holder gives it back. `leased` is when the command was sent that began the lease.
pub(crate) async fn keep(mut held: impl Held, lease: Lease, mut leased: Instant, mut keeper: Keeper) {
    let third = lease.duration() / 3;
    let mut next = match lease {
        Lease::Watchdog(_) => leased + third,
        Lease::Fixed(_) => lease.sure(leased),
    };
    let mut lost = false;
    loop {
        let found_out = tokio::select! {
            biased;
            asked = keeper.asked_to_release() => {
                let error = LockError::Lost { name: held.name().to_owned() };
                let given_back = held.give_back().await;
                asked.done(if lost { Err(error) } else { given_back });
                return;
            }
            () = held.revoked(), if !lost => true,
            () = sleep_until(next), if !lost => false,
        };
        let sent = Instant::now();
        let renewed = match lease {
            _ if found_out => Some(Ok(false)),
            Lease::Watchdog(_) => timeout_at(lease.sure(leased), held.renew()).await.ok(),
            Lease::Fixed(_) => None,
        };
        match renewed {
            Some(Ok(true)) => {
                leased = sent;
                next = sent + third;
            }
            Some(Ok(false)) => lost = true,
            // The next try comes soon, and at the latest when the loss must be told.
            Some(Err(_)) | None => {
                lost = Instant::now() >= lease.sure(leased);
                next = (Instant::now() + RETRY).min(lease.sure(leased));
            }
        }
        if lost {
            keeper.tell_lost();
            held.on_loss();
        }
    }
}
