//! What every lock keeps, and what those keep that can be lost or have a fencing token. A clause fails with a reason, so
//! that a broken twin can be shown to break it, and for that reason.

use super::{
    family::{Family, Server},
    register::{clause, fenced, losable, one_server},
    support::*,
};
use oversell::lab::Proxy;
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
    runtime::Builder,
    sync::oneshot,
    task::{JoinSet, yield_now},
    time::timeout,
};

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

#[apply(clause!)]
async fn two_processes_exclude_each_other<S: Server>(family: Family<S>) -> Result<()> {
    const TASKS: u64 = 8;
    const ROUNDS: u64 = 5;
    let (name, room) = (name(), Arc::new(Room::default()));
    let mut tasks = JoinSet::new();
    // Until all have had their turn: a client that is dropped may take its session with it.
    let processes = [family.process().await, family.process().await];
    for n in 0..2 * TASKS {
        let (lock, room) = (processes[n as usize % 2].lock(&name), room.clone());
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                let guard = lock.acquire(SOON * 3).await?;
                room.enter().await;
                guard.release().await?;
            }
            Ok::<_, LockError>(())
        });
    }
    for result in tasks.join_all().await {
        result.context("every contender must have its turn")?;
    }
    let (overlaps, count) = (room.overlaps.load(SeqCst), room.count.load(SeqCst));
    let planned = TASKS * ROUNDS * 2;
    ensure!(
        overlaps == 0 && count == planned,
        "{overlaps} overlaps, {count} of {planned} counted"
    );
    family.nothing_left(&name).await
}

#[apply(clause!)]
async fn a_wait_ends_in_taken_and_leaves_nothing<S: Server>(family: Family<S>) -> Result<()> {
    let name = name();
    let (holder, other) = (family.process().await, family.process().await);
    let guard = take(&holder.lock(&name)).await?;
    // A majority of several servers has it before the last of them has heard of it.
    until("every server shows the holder", || async {
        family.left(&name).await.len() >= S::COPIES
    })
    .await?;
    let before = family.left(&name).await;
    let start = Instant::now();
    let waited = other.lock(&name).acquire(SHORT).await;
    taken("after the wait", waited)?;
    let elapsed = start.elapsed();
    ensure!(elapsed >= SHORT, "gave up after {elapsed:?} of {SHORT:?}");
    taken("without a wait", other.lock(&name).try_acquire().await)?;
    let after = family.left(&name).await;
    ensure!(
        before == after,
        "the server had {before:?} and has {after:?}"
    );
    guard.release().await?;
    family.nothing_left(&name).await
}

/// The first holder lost its lock and does not know; it must not release the second one's.
#[apply(clause!)]
async fn a_foreign_release_is_refused<S: Server>(family: Family<S>) -> Result<()> {
    let name = name();
    let (first, second) = (family.process().await, family.process().await);
    let third = family.process().await;
    let old = take(&first.lock(&name)).await?;
    family.take_away(&first, &name).await;
    let held = take(&second.lock(&name)).await?;
    lost("a lost lock was released", old.release().await)?;
    let tried = third.lock(&name).try_acquire().await;
    taken("while the second holds it", tried)?;
    held.release().await?;
    family.nothing_left(&name).await
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

#[apply(clause!)]
async fn a_dropped_acquire_leaves_nothing<S: Server>(family: Family<S>) -> Result<()> {
    const MOST_AWAITS: u32 = 12;
    let name = name();
    let [one, other] = [family.process().await, family.process().await];
    in_time(async {
        for times in 0..MOST_AWAITS {
            drop_after(times, one.lock(&name).acquire(SOON)).await;
            let guard = take(&other.lock(&name)).await?;
            // A waiter may have nothing to wake it, so that this end, unlike the others, is not at a counted await.
            let waiting = drop_after(times, async { one.lock(&name).acquire(SOON).await });
            timeout(Duration::from_millis(20), waiting).await.ok();
            guard.release().await?;
        }
        pass(&one.lock(&name)).await
    })
    .await?;
    family.nothing_left(&name).await
}

/// So often in a row: a lease that hides what nobody gave back would end too late for [`in_time`].
const TIMES: u32 = 25;

/// Not by the end of a lease.
async fn in_time(rounds: impl Future<Output = Result<()>>) -> Result<()> {
    timeout(SOON * 3, rounds)
        .await
        .context("only the end of a lease brought it back")?
}

#[apply(clause!)]
async fn a_dropped_guard_releases<S: Server>(family: Family<S>) -> Result<()> {
    let name = name();
    let [one, other] = [family.process().await, family.process().await];
    in_time(async {
        for _ in 0..TIMES {
            drop(take(&one.lock(&name)).await?);
            pass(&other.lock(&name)).await?;
        }
        Ok(())
    })
    .await?;
    family.nothing_left(&name).await
}

#[apply(clause!)]
async fn a_panicking_holder_releases<S: Server>(family: Family<S>) -> Result<()> {
    let name = name();
    let [one, other] = [family.process().await, family.process().await];
    in_time(async {
        for _ in 0..TIMES {
            let lock = one.lock(&name);
            let holder = tokio::spawn(async move {
                let _guard = lock.acquire(SOON).await.expect("it is free");
                std::panic::resume_unwind(Box::new("a handler's bug"));
            });
            ensure!(holder.await.is_err(), "the holder was to panic");
            pass(&other.lock(&name)).await?;
        }
        Ok(())
    })
    .await?;
    family.nothing_left(&name).await
}

/// One holds, the next waits, a third waits behind it; when the next gives up it is still not the third's turn.
#[apply(clause!)]
async fn a_waiter_that_gives_up_does_not_let_the_next_one_in<S: Server>(
    family: Family<S>,
) -> Result<()> {
    let name = name();
    let (first, second) = (family.process().await, family.process().await);
    let third = family.process().await;
    let guard = take(&first.lock(&name)).await?;
    let next = acquiring(second.lock(&name));
    family.until_queued(&name, 2).await?;
    let last = third.lock(&name);
    let last = tokio::spawn(async move { last.acquire(SOON / 4).await });
    family.until_queued(&name, 3).await?;
    next.abort();
    taken("while the first holds it, the third has", last.await?)?;
    guard.release().await?;
    family.nothing_left(&name).await
}

#[apply(one_server!)]
async fn a_server_that_is_down_is_not_a_lock_that_is_taken<S: Server>(
    family: Family<S>,
) -> Result<()> {
    let name = name();
    let proxy = Proxy::to(family.server.address())?;
    let process = family.process_at(&proxy.address()).await;
    pass(&process.lock(&name)).await?;
    proxy.cut();
    for wait in [SOON, Duration::ZERO] {
        let start = Instant::now();
        let tried = process.lock(&name).acquire(wait).await;
        unavailable("with the server down", tried)?;
        ensure!(
            wait.is_zero() || start.elapsed() < wait,
            "waited for a server that is down"
        );
    }
    proxy.mend();
    until("the lock can be acquired again", || async {
        pass(&process.lock(&name)).await.is_ok()
    })
    .await?;
    family.nothing_left(&name).await
}

#[apply(one_server!)]
async fn a_waiter_is_told_that_the_server_went_down<S: Server>(family: Family<S>) -> Result<()> {
    let name = name();
    let proxy = Proxy::to(family.server.address())?;
    let holder = family.process().await;
    let waiter = family.process_at(&proxy.address()).await;
    let guard = take(&holder.lock(&name)).await?;
    let before = family.left(&name).await;
    let waiting = acquiring(waiter.lock(&name));
    family.until_queued(&name, 2).await?;
    proxy.cut();
    unavailable("the server went down, the waiter has", waiting.await?)?;
    proxy.mend();
    until("the waiter has left the queue", || async {
        family.left(&name).await == before
    })
    .await?;
    guard.release().await?;
    family.nothing_left(&name).await
}

#[apply(clause!)]
async fn a_wait_may_be_for_ever<S: Server>(family: Family<S>) -> Result<()> {
    let (name, process) = (name(), family.process().await);
    let guard = process.lock(&name).acquire(Duration::MAX).await?;
    guard.release().await?;
    family.nothing_left(&name).await
}

#[apply(losable!)]
async fn a_holder_is_told_that_its_lock_is_lost<S: Server>(family: Family<S>) -> Result<()> {
    let (name, process) = (name(), family.process().await);
    let guard = take(&process.lock(&name)).await?;
    ensure!(!guard.is_lost(), "lost as soon as it was acquired");
    family.take_away(&process, &name).await;
    told(&guard).await?;
    lost("a lost lock was released", guard.release().await)
}

/// A holder that has lost its lock and does not know stands in nobody's way, in its own process either.
#[apply(losable!)]
async fn a_lost_hold_lets_its_own_process_try<S: Server>(family: Family<S>) -> Result<()> {
    let (name, process) = (name(), family.process().await);
    let old = take(&process.lock(&name)).await?;
    family.take_away(&process, &name).await;
    let held = take(&process.lock(&name)).await?;
    lost("a lost lock was released", old.release().await)?;
    ensure!(!held.is_lost(), "the second hold went with the first");
    held.release().await?;
    family.nothing_left(&name).await
}

/// A process that was stopped (`SIGSTOP`, a pause of its machine) beyond its lease: the first thing that it asks when it
/// goes on is answered by the clock, before any task of it has run, though another has the lock by then. Such a process is
/// a thread here, with a runtime of its own that does nothing.
#[apply(losable!)]
async fn a_process_that_stood_still_knows_at_once<S: Server>(family: Family<S>) -> Result<()> {
    let (name, next) = (name(), family.process().await);
    let (has, held) = oneshot::channel();
    let (go_on, stands) = std::sync::mpsc::channel::<()>();
    let path = name.clone();
    let still = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let process = family.of(family.server.brief_client().await);
            let guard = take(&process.lock(&path)).await?;
            ensure!(!guard.is_lost(), "lost as soon as it was acquired");
            has.send(()).ok().context("the test has ended")?;
            stands.recv()?;
            ensure!(guard.is_lost(), "it did not know that its lock is lost");
            let work = guard.run(async { "done" }).await;
            lost("its work was done", work)?;
            told(&guard).await?;
            lost("its release", guard.release().await)
        })
    });
    held.await.context("it never had the lock")?;
    let guard = take(&next.lock(&name)).await?;
    go_on.send(())?;
    let verdict = tokio::task::spawn_blocking(|| still.join()).await?;
    verdict.ok().context("it panicked")??;
    ensure!(!guard.is_lost(), "the next holder's lock went with it");
    guard.release().await?;
    family.nothing_left(&name).await
}

#[apply(fenced!)]
async fn fencing_tokens_grow<S: Server>(family: Family<S>) -> Result<()> {
    let name = name();
    let processes = [family.process().await, family.process().await];
    let mut last = None;
    for process in processes.iter().cycle().take(6) {
        let guard = take(&process.lock(&name)).await?;
        let fence = guard.fence();
        ensure!(fence > last, "{fence:?} after {last:?}");
        last = fence;
        guard.release().await?;
    }
    Ok(())
}
