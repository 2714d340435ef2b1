//! Until when a lease or a session surely lasts.
//!
//! Its keeper moves the end after each answer of the server: to the time when the request was *sent*, plus what the
//! server guarantees. So a process that stood still knows at once when it continues: the end has passed by the clock,
//! without any message.
//!
//! An end that has passed never moves again: a reported loss stays lost, even if the session comes back.
//!
//! tokio's clock stands still while the machine is suspended, but a lease runs out meanwhile. So the end is moved
//! forward by the time the machine was suspended, which Linux reports (`CLOCK_BOOTTIME`).
//!
//! **What breaks it**: a machine that is suspended between the command that begins a lease and its answer; a suspension
//! on another system than Linux, which holders learn of at the next renewal; a virtual machine that its host pauses or
//! restores, which no clock in it shows.

use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The end of the time in which a hold is surely its holder's, shared by all that rely on it.
#[derive(Debug, Clone)]
pub(crate) struct SureUntil(watch::Sender<SureEnd>);

/// The end of a hold's sure time as it was last set, and the machine's suspension by then, which moves it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SureEnd {
    at: Instant,
    /// The machine's total suspension when the end was last moved.
    suspended: Duration,
}

impl SureEnd {
    /// Returns the end by tokio's clock, which stood still during each suspension since: so it is that much earlier.
    fn by_tokio_clock(self) -> Instant {
        let since = total_suspension().saturating_sub(self.suspended);
        self.at.checked_sub(since).unwrap_or_else(Instant::now)
    }
}

/// The part of a lease that is sure: its whole milliseconds, which are all that servers get, less a twentieth, because
/// clocks run at different speeds.
pub(crate) fn sure_part(lease: Duration) -> Duration {
    let parts = lease.subsec_nanos() % 1_000_000;
    (lease - Duration::from_nanos(parts.into())).mul_f64(0.95)
}

/// The machine's total suspension since it started.
#[cfg(all(target_os = "linux", not(test)))]
fn total_suspension() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    // The clocks are read in this order, so that the time between the two calls does not count as suspension.
    let (boot, running) = (clock_gettime(ClockId::Boottime), clock_gettime(ClockId::Monotonic));
    let since = |time: rustix::time::Timespec| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    since(boot).saturating_sub(since(running))
}

/// Always zero: on other systems a suspension is not known.
#[cfg(all(not(target_os = "linux"), not(test)))]
fn total_suspension() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
use tests::total_suspension;

impl SureUntil {
    pub(crate) fn new(end: Instant) -> Self {
        Self(watch::Sender::new(SureEnd { at: end, suspended: total_suspension() }))
    }

    /// Moves the end to `later`, but never to an earlier time; `false`, and no move, if it has passed. Any suspension since the
    /// last move is subtracted: it may have happened after the request was sent.
    pub(crate) fn extend(&self, later: Instant) -> bool {
        let mut lasts = false;
        // Whoever sleeps until the old end looks again then, and so must only be woken if the end has passed by a suspension.
        self.0.send_if_modified(|end| {
            let by_tokio_clock = end.by_tokio_clock();
            lasts = Instant::now() < by_tokio_clock;
            if lasts {
                let moved = SureEnd { at: later, suspended: end.suspended };
                *end = SureEnd { at: moved.by_tokio_clock().max(by_tokio_clock), suspended: total_suspension() };
            }
            !lasts
        });
        lasts
    }

    /// Moves the end to now, unless it has passed, and wakes all who wait for it.
    pub(crate) fn end_now(&self) {
        self.0.send_modify(|end| end.at = Instant::now().min(end.at));
    }

    pub(crate) fn is_over(&self) -> bool {
        self.time_left().is_zero()
    }

    /// Returns the time until the end; zero once it has passed.
    pub(crate) fn time_left(&self) -> Duration {
        let end = self.0.borrow().by_tokio_clock();
        end.saturating_duration_since(Instant::now())
    }

    /// Completes when the end has come, also if it is moved meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn wait_until_over(&self) {
        let mut ends = self.0.subscribe();
        loop {
            let end = ends.borrow_and_update().by_tokio_clock();
            if end <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(end) => {}
                _ = ends.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const LONG: Duration = Duration::from_secs(60);

    thread_local! {
        static SUSPENDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(super) fn total_suspension() -> Duration {
        SUSPENDED.get()
    }

    /// A suspension longer than the lease, by a clock that has not moved.
    #[tokio::test]
    async fn a_machine_that_was_suspended_knows_that_the_end_has_passed() {
        let sure = SureUntil::new(Instant::now() + LONG);
        let mut waiter = Box::pin(sure.wait_until_over());
        assert!(futures::poll!(&mut waiter).is_pending());
        SUSPENDED.set(LONG / 2);
        assert!(!sure.is_over() && sure.time_left() <= LONG / 2, "suspended for half of it");
        let asked = Instant::now();
        assert!(sure.extend(asked + LONG));
        assert!(sure.time_left() <= LONG / 2, "perhaps after it was asked");
        assert!(sure.extend(asked + LONG) && sure.time_left() > LONG / 2, "surely before");
        SUSPENDED.set(LONG * 2);
        assert!(sure.is_over() && !sure.extend(Instant::now() + LONG * 9));
        assert!(futures::poll!(&mut waiter).is_ready(), "its keeper is told");
    }

    /// The server would end such a lease earlier than its holder.
    #[test]
    fn parts_of_a_millisecond_are_never_relied_on() {
        let micros = |n| sure_part(Duration::from_micros(n));
        assert_eq!(micros(1_999), micros(1_000));
        assert_eq!(micros(10_999), Duration::from_micros(9_500));
    }

    #[tokio::test]
    async fn an_end_that_has_passed_never_moves_again() {
        let start = Instant::now();
        let sure = SureUntil::new(start + LONG);
        assert!(!sure.is_over() && sure.extend(start + 2 * LONG) && sure.extend(start + LONG));
        assert_eq!(sure.0.borrow().at, start + 2 * LONG, "nor back");
        sure.end_now();
        assert!(sure.is_over() && !sure.extend(start + 9 * LONG) && sure.is_over());
        sure.wait_until_over().await;
    }

    #[tokio::test]
    async fn over_completes_at_an_early_end_and_not_at_an_extension() {
        let sure = SureUntil::new(Instant::now() + LONG);
        let mut waiter = Box::pin(sure.wait_until_over());
        assert!(futures::poll!(&mut waiter).is_pending());
        assert!(sure.extend(Instant::now() + 2 * LONG));
        assert!(futures::poll!(&mut waiter).is_pending());
        sure.end_now();
        assert!(futures::poll!(&mut waiter).is_ready());
    }
}
