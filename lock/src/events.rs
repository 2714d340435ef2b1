//! The events of locks, for a program that counts or logs them.
//!
//! A client without an observer does nothing for it: no clock is read, nothing is allocated. Each acquire is also a span of
//! `tracing`, `acquire`, at the level of debug, with the fields `kind` and `lock`: what collects spans sees the wait in it.

use crate::LockError;
use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use tracing::Instrument;

/// What happened to a lock, or to permits of a semaphore: acquired, not acquired, renewed late, lost, released or not released.
///
/// Each guard is released and lost by itself: also one of an owner that re-enters, and each of several leases of a semaphore in
/// ZooKeeper that were acquired together. Of a [`MultiLock`](crate::MultiLock) each part has its events.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum LockEvent<'a> {
    /// It was acquired.
    Acquired {
        /// The kind of lock: the name of its type, as `RedisFairLock`.
        kind: &'static str,
        /// The lock's name.
        name: &'a str,
        /// How long that took.
        waited: Duration,
    },
    /// It was not acquired. An acquire that is dropped before its end causes no event.
    NotAcquired {
        /// The kind of lock: the name of its type, as `RedisFairLock`.
        kind: &'static str,
        /// The lock's name.
        name: &'a str,
        /// How long its caller waited.
        waited: Duration,
        /// What its caller is told.
        error: &'a LockError,
    },
    /// A renewal succeeded when less than half of the lease was left: the server is slow, or this process is.
    RenewedLate {
        /// The kind of lock: the name of its type, as `RedisFairLock`.
        kind: &'static str,
        /// The lock's name.
        name: &'a str,
        /// How long it was still surely held without that renewal.
        left: Duration,
    },
    /// It was lost while it was held. Its release then causes no further event.
    Lost {
        /// The kind of lock: the name of its type, as `RedisFairLock`.
        kind: &'static str,
        /// The lock's name.
        name: &'a str,
        /// How long it was held.
        held: Duration,
    },
    /// It was released.
    Released {
        /// The kind of lock: the name of its type, as `RedisFairLock`.
        kind: &'static str,
        /// The lock's name.
        name: &'a str,
        /// How long it was held.
        held: Duration,
    },
    /// Its release failed: the hold was gone ([`LockError::Lost`]) and no [`Lost`](Self::Lost) came before, or it may last
    /// until its lease or session ends. The failed release of a dropped guard is reported here alone.
    NotReleased {
        /// The kind of lock: the name of its type, as `RedisFairLock`.
        kind: &'static str,
        /// The lock's name.
        name: &'a str,
        /// What its caller is told.
        error: &'a LockError,
    },
}

/// Gets the events of a client's locks, for metrics, logs, alarms; the program implements it. A closure `Fn(LockEvent<'_>)` is
/// an observer.
///
/// It is called by the task that acquires or keeps a lock, so it must be quick and never block. If it panics, that is
/// logged, and the lock is kept.
///
/// ```
/// use oversell_lock::{LockEvent, LockObserver};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Losses(AtomicU64);
///
/// impl LockObserver for Losses {
///     fn observe(&self, event: LockEvent<'_>) {
///         if let LockEvent::Lost { kind, name, held } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///             println!("{kind} {name} was lost after {held:?}");
///         }
///     }
/// }
///
/// # #[cfg(feature = "redis")]
/// let options = oversell_lock::redis::RedisOptions::new("redis://127.0.0.1:6379")
///     .observer(Losses::default());
/// ```
pub trait LockObserver: Send + Sync + 'static {
    /// Is called for each event, by the task in which it happens.
    fn observe(&self, event: LockEvent<'_>);
}

impl<F: Fn(LockEvent<'_>) + Send + Sync + 'static> LockObserver for F {
    fn observe(&self, event: LockEvent<'_>) {
        self(event);
    }
}

impl LockEvent<'_> {
    /// Returns the kind of lock: the name of its type, as `RedisFairLock`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Acquired { kind, .. }
            | Self::NotAcquired { kind, .. }
            | Self::RenewedLate { kind, .. }
            | Self::Lost { kind, .. }
            | Self::Released { kind, .. }
            | Self::NotReleased { kind, .. } => kind,
        }
    }

    /// Returns the lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Acquired { name, .. }
            | Self::NotAcquired { name, .. }
            | Self::RenewedLate { name, .. }
            | Self::Lost { name, .. }
            | Self::Released { name, .. }
            | Self::NotReleased { name, .. } => name,
        }
    }
}

/// A client's observer, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Observer(Option<Arc<dyn LockObserver>>);

impl Observer {
    /// No observer: every event is dropped.
    pub(crate) const NONE: &'static Self = &Self(None);

    pub(crate) fn new(observer: impl LockObserver) -> Self {
        Self(Some(Arc::new(observer)))
    }

    /// Passes the event to the observer, if there is one; logs its panic and goes on.
    pub(crate) fn observe(&self, event: LockEvent<'_>) {
        if let Some(observer) = &self.0
            && catch_unwind(AssertUnwindSafe(|| observer.observe(event))).is_err()
        {
            tracing::error!(?event, "the observer of locks panicked");
        }
    }

    /// Returns the present time; `None` without an observer, for which no clock is read.
    pub(crate) fn now_if_observed(&self) -> Option<Instant> {
        self.0.as_ref().map(|_| Instant::now())
    }

    /// Runs `acquire` in a span of `tracing`, and tells the observer whether it succeeded and how long it took; nothing, if it is
    /// dropped before its end.
    ///
    /// # Cancel safety
    ///
    /// As that of `acquire`.
    pub(crate) async fn report_acquire<T>(
        &self,
        kind: &'static str,
        name: &str,
        acquire: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        let began = self.now_if_observed();
        let acquired = acquire.instrument(tracing::debug_span!("acquire", kind, lock = name)).await;
        if let Some(began) = began {
            let waited = began.elapsed();
            self.observe(match &acquired {
                Ok(_) => LockEvent::Acquired { kind, name, waited },
                Err(error) => LockEvent::NotAcquired { kind, name, waited, error },
            });
        }
        acquired
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "set" } else { "none" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use tracing::{Event, Metadata, Subscriber, span};

    /// Writes down when a span is made, entered and closed.
    struct Spans(Arc<Mutex<Vec<&'static str>>>);

    impl Subscriber for Spans {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
            self.0.lock().push(span.metadata().name());
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &span::Id) {
            self.0.lock().push("entered");
        }

        fn exit(&self, _: &span::Id) {
            self.0.lock().push("left");
        }
    }

    #[tokio::test]
    async fn the_wait_is_a_span() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let collected = tracing::subscriber::set_default(Spans(Arc::clone(&seen)));
        Observer::NONE.report_acquire("RedisLock", "door", async { Ok(()) }).await.unwrap();
        drop(collected);
        assert_eq!(seen.lock()[..3], ["acquire", "entered", "left"], "{seen:?}");
    }
}
