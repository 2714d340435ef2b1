//! Several locks as one: all of them or none.
//!
//! 1. Take the parts in the given order. Wait for the first one as long as the caller allows: nothing is held yet.
//! 2. Wait for each further part at most [`FURTHER_PART_WAIT`]. If that fails, release all, the last one first, pause for a
//!    random time up to [`MAX_ROUND_PAUSE`], and begin again with twice that wait. So two contenders that take the same parts in
//!    opposite orders block each other only for a moment, and one whose part has a long line gets it in the end.
//! 3. A task watches all parts. The loss of one is the loss of the whole; the others stay until the holder releases.
//! 4. Release all, the last one first, whatever becomes of each.
//!
//! Next to read: `keeper.rs`; and `redis/redlock.rs`, where most of the parts are enough.

use crate::{
    Guard, Lock, LockError, MAX_DURATION, deadline,
    error::ClientClosed,
    inherent,
    keeper::{Share, run_keeper},
    sure_until::SureUntil,
    time_left,
};
use futures::future::select_all;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a contender waits in its first round for each part after the first: short, for it holds parts meanwhile that
/// others may need.
const FURTHER_PART_WAIT: Duration = Duration::from_millis(100);
/// The longest pause before the next round: as long as the first wait for a part, so that of two contenders that release
/// together one takes all parts while the other pauses.
const MAX_ROUND_PAUSE: Duration = Duration::from_millis(100);

/// Several locks that are held together or not at all, of one kind or of several ([`Lock::boxed`]). Each part has its
/// own fence, or none ([`Guard::fences`]). It belongs to no client: if the runtime in which it was acquired ends, its
/// guard is lost and its parts are released.
///
/// # Survives
///
/// Opposite orders, a part that is lost, a part whose server goes down (the others are released), a dropped caller.
///
/// # What breaks it
///
/// What breaks any of its parts. It is not fair: a contender that starts over goes to the end of each line. Taking the same lock
/// twice blocks itself, unless its owner may hold it twice.
///
/// # Cost
///
/// What its parts cost, one after the other.
///
/// # Format
///
/// None of its own: as Redisson's `RedissonMultiLock` and Curator's `InterProcessMultiLock`, it takes its parts.
///
/// # Example
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # mod example {
/// # use oversell_lock::{LockError, MultiLock};
/// # use std::time::Duration;
/// # async fn example(redis: oversell_lock::redis::RedisClient) -> Result<(), LockError> {
/// let three = MultiLock::new(["lock1", "lock2", "lock3"].map(|name| redis.lock(name)).into());
/// let guard = three.acquire(Duration::from_secs(5)).await?; // all of them or none
/// guard.release().await?;
/// # Ok(())
/// # }
/// # }
/// ```
#[derive(Debug)]
pub struct MultiLock<L> {
    name: String,
    parts: Vec<L>,
    waits_while_unavailable: bool,
}

impl<L: Lock> MultiLock<L> {
    /// Makes one lock of `parts`, at least one, which are taken in this order. Its name is their names, joined by
    /// commas. With no parts, `acquire` fails with [`LockError::Invalid`].
    #[must_use]
    pub fn new(parts: Vec<L>) -> Self {
        let names: Vec<_> = parts.iter().map(Lock::name).collect();
        Self { name: names.join(","), parts, waits_while_unavailable: false }
    }

    /// Lets `acquire` begin again while the server of a part is unavailable, until its wait is over; it then returns that
    /// part's error. By default that error ends it: at once, or, if the part's own client waits for its server, when the
    /// wait for this part is over, which is short once others are held. A client that was closed ends the wait.
    ///
    /// ```no_run
    /// # use oversell_lock::{Lock, LockError, MultiLock};
    /// # use std::time::Duration;
    /// # async fn example(parts: Vec<impl Lock>) -> Result<(), LockError> {
    /// let all = MultiLock::new(parts).wait_while_unavailable(true);
    /// all.acquire(Duration::from_secs(60)).await?.release().await
    /// # }
    /// ```
    #[must_use]
    pub fn wait_while_unavailable(self, waits: bool) -> Self {
        Self { waits_while_unavailable: waits, ..self }
    }

    /// Makes one guard for the parts' guards, and spawns its keeper, which owns them from now on.
    fn guard_for_parts(&self, guards: Vec<Guard>) -> Guard {
        let (guard, keeper) = Guard::of_parts(&self.name, &guards);
        // Each part has its own expiry.
        let sure_until = SureUntil::new(Instant::now() + MAX_DURATION);
        tokio::spawn(run_keeper(PartsShare(guards), sure_until, keeper));
        guard
    }

    /// Whether `acquire` goes on after this error: only if it waits out outages, and this is one, not a closed client's.
    fn keeps_waiting_after(&self, error: &LockError) -> bool {
        self.waits_while_unavailable && matches!(error, LockError::Unavailable { reason, .. } if !reason.is::<ClientClosed>())
    }

    /// Acquires the parts once, in their order: waits for the first until `until`, for each further one at most `part_wait`.
    /// If one was not free in time, or is lost when all are acquired, releases all and returns `None`; after any other error
    /// it releases them too.
    async fn try_round(&self, until: Instant, part_wait: Duration) -> Result<Option<Vec<Guard>>, LockError> {
        let mut guards = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let left = time_left(until);
            let wait = if guards.is_empty() { left } else { left.min(part_wait) };
            match part.acquire(wait).await {
                Ok(guard) => guards.push(guard),
                Err(error) => {
                    release_all_and_log_failures(guards).await;
                    return if matches!(error, LockError::Taken { .. }) { Ok(None) } else { Err(error) };
                }
            }
        }
        if guards.iter().any(Guard::is_lost) {
            release_all_and_log_failures(guards).await;
            return Ok(None);
        }
        Ok(Some(guards))
    }
}

impl<L: Lock> Lock for MultiLock<L> {
    fn name(&self) -> &str {
        &self.name
    }

    /// Acquires all parts, in rounds, until `wait` is over: if one is not free soon, all are released, and the next round
    /// begins. Any other error ends it, that of an unavailable server unless this lock waits for it.
    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        if self.parts.is_empty() {
            return Err(LockError::invalid(&self.name, "parts: must have at least one lock"));
        }
        let (until, mut part_wait) = (deadline(wait), FURTHER_PART_WAIT);
        loop {
            let missed = match self.try_round(until, part_wait).await {
                Ok(Some(guards)) => return Ok(self.guard_for_parts(guards)),
                Ok(None) => LockError::taken(&self.name, wait),
                Err(error) if self.keeps_waiting_after(&error) => error,
                Err(error) => return Err(error),
            };
            let pause = MAX_ROUND_PAUSE.mul_f64(fastrand::f64());
            sleep(pause.min(time_left(until))).await;
            if Instant::now() >= until {
                return Err(missed);
            }
            part_wait = part_wait.saturating_mul(2);
        }
    }
}

inherent!(MultiLock<L>);

/// The share of a guard of several locks: the guards of all parts.
struct PartsShare(Vec<Guard>);

impl Share for PartsShare {
    fn kind(&self) -> &'static str {
        "MultiLock"
    }

    /// Completes once any part is lost; each part renews itself.
    async fn renew_until_lost(&self, _: &SureUntil) {
        select_all(self.0.iter().map(|part| Box::pin(part.lost()))).await;
    }

    /// Releases every part, also after a loss: each part knows whether it is lost.
    async fn finish(self, _: bool) -> Result<(), LockError> {
        release_all(self.0).await
    }
}

/// Releases all guards, the last one first; a failure does not stop the others.
async fn release_all(parts: Vec<Guard>) -> Result<(), LockError> {
    let mut failed = Vec::new();
    for part in parts.into_iter().rev() {
        let name = part.name().to_owned();
        if let Err(error) = part.release().await {
            failed.push((name, error));
        }
    }
    combined_error(failed)
}

/// Releases parts of a whole that was never acquired; a failure, a lost part for example, is only logged.
async fn release_all_and_log_failures(parts: Vec<Guard>) {
    if let Err(error) = release_all(parts).await {
        tracing::debug!(%error, "not all parts were given back cleanly");
    }
}

/// `Ok` if no part failed. If one was lost, `Lost` with the names of all that failed, because the holder may not have been
/// alone; otherwise the error of the first that failed, with the reasons of all.
fn combined_error(failed: Vec<(String, LockError)>) -> Result<(), LockError> {
    let lost = failed.iter().any(|(_, error)| matches!(error, LockError::Lost { .. }));
    if lost {
        let names: Vec<_> = failed.into_iter().map(|(name, _)| name).collect();
        return Err(LockError::lost(names.join(",")));
    }
    let each = failed.iter().map(|(name, error)| format!("{name}: {error}"));
    let reason = each.collect::<Vec<_>>().join("; ").into();
    match failed.into_iter().next() {
        None => Ok(()),
        Some((_, LockError::Unavailable { server, .. })) => Err(LockError::Unavailable { server, reason }),
        Some((_, LockError::Refused { server, .. })) => Err(LockError::Refused { server, reason }),
        Some((_, other)) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fence;
    use parking_lot::Mutex;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    };
    use tokio::sync::Notify;

    type Log = Arc<Mutex<Vec<String>>>;

    /// A lock of this process that writes down what is done to it, can be lost, and may fail to be given back.
    #[derive(Clone)]
    struct Part {
        name: &'static str,
        log: Log,
        taken: Arc<tokio::sync::Mutex<()>>,
        lose: Arc<Notify>,
        fails: Option<LockError>,
        fence: Option<Fence>,
    }

    impl Part {
        fn new(name: &'static str, log: &Log) -> Self {
            Self { name, log: Arc::clone(log), taken: Arc::default(), lose: Arc::default(), fails: None, fence: None }
        }

        fn is_free(&self) -> bool {
            self.taken.try_lock().is_ok()
        }
    }

    impl Lock for Part {
        fn name(&self) -> &str {
            self.name
        }

        async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
            let lock = tokio::time::timeout(wait, Arc::clone(&self.taken).lock_owned()).await;
            let lock = lock.map_err(|_| LockError::taken(self.name, wait))?;
            self.log.lock().push(format!("+{}", self.name));
            let (guard, mut keeper) = Guard::new(self.name, self.fence);
            let part = self.clone();
            tokio::spawn(async move {
                tokio::select! {
                    asked = keeper.release_requested() => part.freed(lock, asked),
                    () = part.lose.notified() => {
                        keeper.tell_lost();
                        let asked = keeper.release_requested().await;
                        asked.done(Err(LockError::lost(part.name)));
                    }
                }
            });
            Ok(guard)
        }
    }

    impl Part {
        fn freed(&self, lock: tokio::sync::OwnedMutexGuard<()>, asked: crate::Release) {
            self.log.lock().push(format!("-{}", self.name));
            drop(lock);
            asked.done(self.fails.clone().map_or(Ok(()), Err));
        }
    }

    fn down() -> LockError {
        LockError::unavailable("redis", "gone")
    }

    #[tokio::test]
    async fn parts_are_taken_in_order_and_given_back_in_reverse() {
        let log = Log::default();
        let multi = MultiLock::new(["a", "b", "c"].map(|name| Part::new(name, &log)).into());
        assert_eq!(multi.name(), "a,b,c");
        multi.try_acquire().await.unwrap().release().await.unwrap();
        assert_eq!(log.lock().concat(), "+a+b+c-c-b-a");
    }

    #[tokio::test]
    async fn an_acquire_that_misses_one_part_keeps_none() {
        let log = Log::default();
        let parts = ["a", "b", "c"].map(|name| Part::new(name, &log));
        let other = parts[2].try_acquire().await.unwrap();
        let multi = MultiLock::new(parts.to_vec());
        for wait in [Duration::ZERO, FURTHER_PART_WAIT] {
            let start = Instant::now();
            let missed = multi.acquire(wait).await.unwrap_err();
            assert!(matches!(&missed, LockError::Taken { name, waited } if name == "a,b,c" && *waited == wait));
            assert!(start.elapsed() >= wait);
            assert!(parts[0].is_free() && parts[1].is_free());
        }
        assert!(log.lock().concat().starts_with("+c+a+b-b-a+a+b-b-a"));
        drop(other);
    }

    /// A lock whose server does not answer the first tries.
    struct Outage {
        part: Part,
        tries_left: AtomicU32,
        error: fn() -> LockError,
    }

    impl Lock for Outage {
        fn name(&self) -> &str {
            self.part.name
        }

        async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
            let left = |n: u32| n.checked_sub(1);
            match self.tries_left.fetch_update(SeqCst, SeqCst, left) {
                Ok(_) => Err((self.error)()),
                Err(_) => self.part.acquire(wait).await,
            }
        }
    }

    #[tokio::test]
    async fn an_outage_of_a_part_is_waited_out_if_asked() {
        let closed = || LockError::unavailable("redis", ClientClosed);
        for (waits, tries, error, wait_ms, held) in [
            (true, 3, down as fn() -> LockError, 60_000, true),
            (true, u32::MAX, down, 300, false),
            (true, 1, down, 0, false),
            (true, 3, closed, 60_000, false),
            (false, 3, down, 60_000, false),
        ] {
            let log = Log::default();
            let first = Part::new("a", &log);
            let outage = Outage { part: Part::new("b", &log), tries_left: AtomicU32::new(tries), error };
            let parts = vec![first.clone().boxed(), outage.boxed()];
            let multi = MultiLock::new(parts).wait_while_unavailable(waits);
            let start = Instant::now();
            let acquired = multi.acquire(Duration::from_millis(wait_ms)).await;
            let waited = start.elapsed() >= Duration::from_millis(wait_ms);
            assert_eq!(waited, wait_ms < 60_000);
            match acquired {
                Ok(guard) => guard.release().await.unwrap(),
                Err(error) => {
                    assert!(!held && matches!(error, LockError::Unavailable { .. }), "{error}");
                }
            }
            assert_eq!(log.lock().concat().ends_with("+a+b-b-a"), held);
            assert!(first.is_free());
        }
    }

    #[tokio::test]
    async fn a_lost_part_is_reported_and_the_others_stay_until_release() {
        let log = Log::default();
        let parts = ["a", "b", "c"].map(|name| Part::new(name, &log));
        let guard = MultiLock::new(parts.to_vec()).try_acquire().await.unwrap();
        parts[1].lose.notify_one();
        guard.lost().await;
        assert!(!parts[0].is_free() && !parts[2].is_free());
        let lost = guard.release().await.unwrap_err();
        assert!(matches!(&lost, LockError::Lost { name } if name == "b"), "{lost}");
        assert!(parts[0].is_free() && parts[2].is_free());
    }

    #[tokio::test]
    async fn parts_may_be_of_several_kinds_and_their_fences_are_shown() {
        let mut parts = ["a", "b"].map(|name| Part::new(name, &Log::default()));
        parts[1].fence = Some(Fence(7));
        let guard = MultiLock::new(parts.map(Lock::boxed).into()).try_acquire().await.unwrap();
        assert_eq!(guard.fences().collect::<Vec<_>>(), [("b", Fence(7))]);
        guard.release().await.unwrap();
    }

    #[tokio::test]
    async fn every_part_is_released_and_those_that_fail_are_named() {
        let log = Log::default();
        let mut parts = ["a", "b", "c"].map(|name| Part::new(name, &log));
        parts[0].fails = Some(down());
        parts[2].fails = Some(down());
        let failed = MultiLock::new(parts.to_vec()).try_acquire().await.unwrap().release().await.unwrap_err();
        assert!(matches!(failed, LockError::Unavailable { server: "redis", .. }));
        let text = failed.to_string();
        assert!(text.contains("a: ") && text.contains("c: ") && !text.contains("b: "), "{text}");
        assert_eq!(log.lock().concat(), "+a+b+c-c-b-a");
    }

    #[tokio::test]
    async fn an_error_of_several_parts_names_each_failed_part() {
        let refused = || LockError::Refused { server: "redis", reason: "no right".into() };
        for (error, text) in [
            (refused(), "redis refused: c: redis refused: no right; a: redis refused: no right"),
            (LockError::lost("it"), "c,a was lost before it was released"),
        ] {
            let mut parts = ["a", "b", "c"].map(|name| Part::new(name, &Log::default()));
            parts[0].fails = Some(error.clone());
            parts[2].fails = Some(error);
            let guard = MultiLock::new(parts.to_vec()).try_acquire().await.unwrap();
            let said = guard.release().await.unwrap_err().to_string();
            assert_eq!(said, text);
        }
    }

    #[tokio::test]
    async fn no_parts_are_refused() {
        let refused = MultiLock::<Part>::new(Vec::new()).try_acquire().await.unwrap_err();
        assert!(matches!(&refused, LockError::Invalid { rule, .. } if rule.starts_with("parts: ")));
    }
}
