//! The contract. A clause says how it was broken instead of panicking, so that a broken twin can be shown to break it.

use super::{
    Verdict,
    family::{Family, Process, name, until},
    proxy::Proxy,
};
use oversell_lock::{Guard, Lock, LockError};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    task::Poll,
    time::{Duration, Instant},
};
use tokio::{
    task::{JoinSet, yield_now},
    time::timeout,
};

/// Long enough for whatever must happen; nothing waits for all of it.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A wait that is meant to end without the lock.
const SHORT: Duration = Duration::from_millis(300);

/// Something that only one may use at a time: it notices a second one inside, and its count, read and written back
/// in two steps, comes out too low.
#[derive(Default)]
struct Room {
    occupied: AtomicBool,
    overlaps: AtomicU64,
    count: AtomicU64,
}

impl Room {
    async fn enter(&self) {
        if self.occupied.swap(true, SeqCst) {
            self.overlaps.fetch_add(1, SeqCst);
        }
        let count = self.count.load(SeqCst);
        for _ in 0..5 {
            yield_now().await;
        }
        self.count.store(count + 1, SeqCst);
        self.occupied.store(false, SeqCst);
    }
}

pub(crate) fn ensure(condition: bool, broken: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(broken()) }
}

pub(crate) fn says<T>(what: &str, result: Result<T, LockError>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// The lock, which must be free or become so.
async fn take<F: Family>(process: &F::Process, name: &str) -> Result<Guard, String> {
    says(
        "the lock must be had",
        process.lock(name).acquire(SOON).await,
    )
}

pub(crate) async fn nothing_left<F: Family>(family: &F, name: &str) -> Verdict {
    let gone = until("nothing is left on the server", || async {
        family.left(name).await.is_empty()
    });
    match gone.await {
        Ok(()) => Ok(()),
        Err(error) => Err(format!("{error}; there is {:?}", family.left(name).await)),
    }
}

pub(crate) async fn two_processes_exclude_each_other<F: Family>(family: Arc<F>) -> Verdict {
    const TASKS: u64 = 8;
    const ROUNDS: u64 = 5;
    let (name, room) = (name(), Arc::new(Room::default()));
    let processes = [
        Arc::new(family.process().await),
        Arc::new(family.process().await),
    ];
    let mut tasks = JoinSet::new();
    for process in &processes {
        for _ in 0..TASKS {
            let (process, room, name) = (process.clone(), room.clone(), name.clone());
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    let guard = process.lock(&name).acquire(SOON * 3).await?;
                    room.enter().await;
                    guard.release().await?;
                }
                Ok::<_, LockError>(())
            });
        }
    }
    for result in tasks.join_all().await {
        says("every contender must have its turn", result)?;
    }
    let (overlaps, count) = (room.overlaps.load(SeqCst), room.count.load(SeqCst));
    let planned = TASKS * ROUNDS * 2;
    ensure(overlaps == 0 && count == planned, || {
        format!("{overlaps} overlaps, {count} of {planned} counted")
    })?;
    nothing_left(&*family, &name).await
}

pub(crate) async fn a_wait_ends_in_taken_and_leaves_nothing<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let (holder, other) = (family.process().await, family.process().await);
    let guard = take::<F>(&holder, &name).await?;
    until("every server shows the holder", || {
        family.is_everywhere(&name)
    })
    .await?;
    let before = family.left(&name).await;
    let start = Instant::now();
    match other.lock(&name).acquire(SHORT).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("after the wait: {other:?}")),
    }
    ensure(start.elapsed() >= SHORT, || {
        format!("gave up after {:?} of {SHORT:?}", start.elapsed())
    })?;
    match other.lock(&name).try_acquire().await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("without a wait: {other:?}")),
    }
    let after = family.left(&name).await;
    ensure(before == after, || {
        format!("the server had {before:?} and has {after:?}")
    })?;
    says("release", guard.release().await)?;
    nothing_left(&*family, &name).await
}

/// The first holder lost its lock and does not know; it must not release the second one's.
pub(crate) async fn a_foreign_release_is_refused<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let [first, second, third] = [
        family.process().await,
        family.process().await,
        family.process().await,
    ];
    let lost = take::<F>(&first, &name).await?;
    family.take_away(&first, &name).await;
    let held = take::<F>(&second, &name).await?;
    let refused = lost.release().await;
    ensure(matches!(refused, Err(LockError::Lost { .. })), || {
        format!("a lost lock was released: {refused:?}")
    })?;
    match third.lock(&name).try_acquire().await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("while the second holds it: {other:?}")),
    }
    says("the second's release", held.release().await)?;
    nothing_left(&*family, &name).await
}

/// Polls `acquire` until it has been pending `times` times, then drops it, and what it gave.
async fn drop_after(times: u32, acquire: impl Future<Output = Result<Guard, LockError>>) {
    let mut left = times;
    let mut acquire = pin!(acquire);
    std::future::poll_fn(|context| match acquire.as_mut().poll(context) {
        Poll::Pending if left > 0 => {
            left -= 1;
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}

pub(crate) async fn a_dropped_acquire_leaves_nothing<F: Family>(family: Arc<F>) -> Verdict {
    const MOST_AWAITS: u32 = 12;
    let name = name();
    let [one, other] = [family.process().await, family.process().await];
    in_time(async {
        for times in 0..MOST_AWAITS {
            drop_after(times, one.lock(&name).acquire(SOON)).await;
            let guard = take::<F>(&other, &name).await?;
            // A waiter may have nothing to wake it, so that this end, unlike the others, is not at a counted await.
            let lock = one.lock(&name);
            let waiting = drop_after(times, lock.acquire(SOON));
            timeout(Duration::from_millis(20), waiting).await.ok();
            says("release", guard.release().await)?;
        }
        says("release", take::<F>(&one, &name).await?.release().await)
    })
    .await?;
    nothing_left(&*family, &name).await
}

/// So often in a row: a lease that hides what nobody gave back would end too late for [`in_time`].
const TIMES: u32 = 25;

/// Not by the end of a lease.
async fn in_time(rounds: impl Future<Output = Verdict>) -> Verdict {
    timeout(SOON * 3, rounds)
        .await
        .unwrap_or_else(|_| Err("only the end of a lease brought it back".into()))
}

pub(crate) async fn a_dropped_guard_releases<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let [one, other] = [family.process().await, family.process().await];
    in_time(async {
        for _ in 0..TIMES {
            drop(take::<F>(&one, &name).await?);
            says("release", take::<F>(&other, &name).await?.release().await)?;
        }
        Ok(())
    })
    .await?;
    nothing_left(&*family, &name).await
}

pub(crate) async fn a_panicking_holder_releases<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let [one, other] = [family.process().await, family.process().await];
    in_time(async {
        for _ in 0..TIMES {
            let lock = one.lock(&name);
            let holder = tokio::spawn(async move {
                let _guard = lock.acquire(SOON).await.expect("it is free");
                std::panic::resume_unwind(Box::new("a handler's bug"));
            });
            ensure(holder.await.is_err(), || "the holder was to panic".into())?;
            says("release", take::<F>(&other, &name).await?.release().await)?;
        }
        Ok(())
    })
    .await?;
    nothing_left(&*family, &name).await
}

/// One holds, the next waits, a third waits behind it; when the next gives up it is still not the third's turn.
pub(crate) async fn who_gives_up_does_not_let_the_next_one_in<F: Family>(
    family: Arc<F>,
) -> Verdict {
    let name = name();
    let [first, second, third] = [
        family.process().await,
        family.process().await,
        family.process().await,
    ];
    let guard = take::<F>(&first, &name).await?;
    let queued = |n: usize| {
        let (family, name) = (&family, &name);
        until("the waiter is queued", move || async move {
            !F::QUEUES || family.left(name).await.len() >= n
        })
    };
    let (next, last) = (second.lock(&name), third.lock(&name));
    let next = tokio::spawn(async move { next.acquire(SOON).await });
    queued(2).await?;
    let last = tokio::spawn(async move { last.acquire(SOON / 4).await });
    queued(3).await?;
    next.abort();
    match last.await {
        Ok(Err(LockError::Taken { .. })) => {}
        other => {
            return Err(format!(
                "while the first still holds it, the third has {other:?}"
            ));
        }
    }
    says("release", guard.release().await)?;
    nothing_left(&*family, &name).await
}

pub(crate) async fn a_server_that_is_down_is_not_a_lock_that_is_taken<F: Family>(
    family: Arc<F>,
) -> Verdict {
    let name = name();
    let proxy = Proxy::to(family.server());
    let process = family.process_at(&proxy.address()).await;
    says("release", take::<F>(&process, &name).await?.release().await)?;
    proxy.cut().await;
    for wait in [SOON, Duration::ZERO] {
        let start = Instant::now();
        match process.lock(&name).acquire(wait).await {
            Err(LockError::Unavailable { .. }) => {}
            other => return Err(format!("with the server down: {other:?}")),
        }
        ensure(wait.is_zero() || start.elapsed() < wait, || {
            "waited for a server that is down".into()
        })?;
    }
    proxy.mend();
    until("the lock is had again", || async {
        match process.lock(&name).acquire(SOON).await {
            Ok(guard) => guard.release().await.is_ok(),
            Err(_) => false,
        }
    })
    .await?;
    nothing_left(&*family, &name).await
}

pub(crate) async fn a_waiter_is_told_that_the_server_went_down<F: Family>(
    family: Arc<F>,
) -> Verdict {
    let name = name();
    let proxy = Proxy::to(family.server());
    let (holder, waiter) = (
        family.process().await,
        family.process_at(&proxy.address()).await,
    );
    let guard = take::<F>(&holder, &name).await?;
    let before = family.left(&name).await;
    let lock = waiter.lock(&name);
    let waiting = tokio::spawn(async move { lock.acquire(SOON).await });
    until("the waiter is queued", || async {
        !F::QUEUES || family.left(&name).await.len() == 2
    })
    .await?;
    proxy.cut().await;
    match waiting.await {
        Ok(Err(LockError::Unavailable { .. })) => {}
        other => {
            return Err(format!(
                "the server went down, and the waiter has {other:?}"
            ));
        }
    }
    proxy.mend();
    until("the waiter has left the queue", || async {
        family.left(&name).await == before
    })
    .await?;
    says("release", guard.release().await)?;
    nothing_left(&*family, &name).await
}

/// For locks with a lease or a session.
pub(crate) async fn a_holder_is_told_that_its_lock_is_lost<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let process = family.process().await;
    let guard = take::<F>(&process, &name).await?;
    ensure(!guard.is_lost(), || "lost as soon as it was had".into())?;
    family.take_away(&process, &name).await;
    timeout(SOON, guard.lost())
        .await
        .map_err(|_| "the holder was never told")?;
    let released = guard.release().await;
    ensure(matches!(released, Err(LockError::Lost { .. })), || {
        format!("a lost lock was released: {released:?}")
    })
}

/// For locks with a fencing token.
pub(crate) async fn fencing_tokens_grow<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let processes = [family.process().await, family.process().await];
    let mut last = None;
    for process in processes.iter().cycle().take(6) {
        let guard = take::<F>(process, &name).await?;
        let fence = guard.fence();
        ensure(fence > last, || format!("{fence:?} after {last:?}"))?;
        last = fence;
        says("release", guard.release().await)?;
    }
    Ok(())
}

/// For locks with a lease: whoever has lost it and does not know stands in nobody's way, in its own process either.
pub(crate) async fn a_lost_hold_lets_its_own_process_try<F: Family>(family: Arc<F>) -> Verdict {
    let name = name();
    let process = family.process().await;
    let lost = take::<F>(&process, &name).await?;
    family.take_away(&process, &name).await;
    let held = take::<F>(&process, &name).await?;
    let refused = lost.release().await;
    ensure(matches!(refused, Err(LockError::Lost { .. })), || {
        format!("a lost lock was released: {refused:?}")
    })?;
    ensure(!held.is_lost(), || {
        "the second hold went with the first".into()
    })?;
    says("release", held.release().await)?;
    nothing_left(&*family, &name).await
}
