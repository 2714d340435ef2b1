//! What every lock keeps, and what those keep that can be lost or have a fencing token. A clause fails with a reason,
//! so that a broken twin can be shown to fail for that reason.

use super::{
    register::{clause, in_turn, losable, one_server},
    support::*,
};
use oversell_lock::WithError;
use parking_lot::Mutex;
use tokio::{runtime::Builder, sync::oneshot};

#[apply(one_server!)]
async fn a_waiter_is_told_that_the_server_went_down<S: Server>(family: Family<S>) -> Result {
    let name = name();
    let proxy = Proxy::to(family.server.address())?;
    let holder = family.process().await;
    let waiter = family.process_at(&proxy.address()).await;
    let guard = take(&holder.lock(&name)).await?;
    let before = family.left(&name).await;
    let waiting = spawn_acquire(waiter.lock(&name));
    family.until_queued(&name, 2).await?;
    proxy.cut();
    ensure_unavailable("the server went down, the waiter has", waiting.await?)?;
    proxy.mend();
    let has_left = async || family.left(&name).await == before;
    until("the waiter has left the queue", has_left).await?;
    guard.release().await?;
    family.nothing_left(&name).await
}

#[apply(clause!)]
async fn a_wait_may_be_for_ever<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    for lock in process.halves(&name, Ask::default()) {
        lock.acquire(FOR_EVER).await?.release().await?;
    }
    family.nothing_left(&name).await
}

#[apply(losable!)]
async fn a_holder_is_told_that_its_lock_is_lost<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    let guard = take(&process.lock(&name)).await?;
    ensure_kept("what was just acquired", &guard)?;
    family.take_away(&process, &name).await;
    wait_until_lost(&guard).await?;
    ensure_lost("a lost lock was released", guard.release().await)
}

/// Work under a lock is alone, its result and its own error come back, and the lock is free after each.
#[apply(clause!)]
async fn work_is_done_under_the_lock<S: Server>(family: Family<S>) -> Result {
    let (name, process, other) = (name(), family.process().await, family.process().await);
    for fails in [false, true] {
        let (other, name) = (other.lock(&name), &name);
        let work = async move |_| {
            ensure_taken("beside the work", other.try_acquire().await).context("alone")?;
            ensure!(!fails, "no paper for {name}");
            Ok(7)
        };
        match process.lock(name).with(SOON, work).await {
            Ok(7) if !fails => {}
            Err(WithError::Work(error)) if fails && error.to_string().starts_with("no paper") => {}
            other => bail!("fails: {fails}, and the caller is told {other:?}"),
        }
    }
    let held = take(&process.lock(&name)).await?;
    let never = other.lock(&name).with(Duration::ZERO, async |_| -> Result { bail!("it was begun") }).await;
    ensure!(matches!(&never, Err(WithError::NotAcquired(LockError::Taken { .. }))), "beside a holder: {never:?}");
    held.release().await?;
    family.nothing_left(&name).await
}

/// Work is dropped at the loss of its lock, and its caller told.
#[apply(losable!)]
async fn work_ends_where_its_lock_is_lost<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    let (begins, begun) = oneshot::channel();
    let (goes_with_the_work, dropped) = oneshot::channel::<()>();
    let work = move |_| async move {
        let _goes = goes_with_the_work;
        begins.send(()).ok();
        std::future::pending::<Result>().await
    };
    let lock = process.lock(&name);
    let working = tokio::spawn(async move { lock.with(SOON, work).await });
    begun.await.context("it never began")?;
    family.take_away(&process, &name).await;
    let told = timeout(SOON, working).await.context("the work goes on without its lock")??;
    ensure!(matches!(&told, Err(WithError::Lost(LockError::Lost { .. }))), "its caller is told {told:?}");
    ensure!(dropped.await.is_err(), "the work was not dropped");
    family.nothing_left(&name).await
}

/// A lost lock whose holder does not know yet blocks nobody, not even in its own process.
#[apply(losable!)]
async fn a_lost_hold_lets_its_own_process_try<S: Server>(family: Family<S>) -> Result {
    let (name, process, mut old) = (name(), family.process().await, Vec::new());
    for _ in 0..3 {
        old.push(take(&process.lock(&name)).await?);
        family.take_away(&process, &name).await;
    }
    let held = take(&process.lock(&name)).await?;
    for old in old {
        ensure_lost("a lost lock was released", old.release().await)?;
    }
    ensure_kept("the last hold", &held)?;
    held.release().await?;
    family.nothing_left(&name).await
}

/// A process that was stopped (`SIGSTOP`, a paused machine) beyond its lease: its first question is answered by the
/// clock, before any of its tasks has run, though another holds the lock by then. Here such a process is a thread whose
/// runtime does nothing.
#[apply(losable!)]
async fn a_process_that_stood_still_knows_at_once<S: Server>(family: Family<S>) -> Result {
    let (name, next) = (name(), family.process().await);
    let (has, held) = oneshot::channel();
    let (go_on, stands) = std::sync::mpsc::channel::<()>();
    let path = name.clone();
    let still = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let process = family.of(family.server.brief_client().await);
            let guard = take(&process.lock(&path)).await?;
            ensure_kept("what was just acquired", &guard)?;
            has.send(()).ok().context("the test has ended")?;
            stands.recv()?;
            ensure!(guard.is_lost(), "it did not know that its lock is lost");
            let work = guard.run(async { "done" }).await;
            ensure_lost("its work was done", work)?;
            wait_until_lost(&guard).await?;
            ensure_lost("its release", guard.release().await)
        })
    });
    held.await.context("it never had the lock")?;
    let guard = take(&next.lock(&name)).await?;
    go_on.send(())?;
    let verdict = tokio::task::spawn_blocking(|| still.join()).await?;
    verdict.ok().context("it panicked")??;
    ensure_kept("the next holder's lock", &guard)?;
    guard.release().await?;
    family.nothing_left(&name).await
}

/// Waiters of two processes in turn, each after the last one is in the queue.
#[apply(in_turn!)]
async fn waiters_are_served_in_order_of_arrival<S: Server>(family: Family<S>) -> Result {
    const WAITERS: usize = 24;
    let (name, processes) = (name(), [family.process().await, family.process().await]);
    let first = take(&processes[0].lock(&name)).await?;
    let (turns, mut waiters) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    for waiter in 0..WAITERS {
        let (lock, turns) = (processes[waiter % 2].lock(&name), turns.clone());
        waiters.spawn(async move {
            let guard = lock.acquire(SOON * 2).await?;
            turns.lock().push(waiter);
            guard.release().await
        });
        family.until_queued(&name, waiter + 2).await?;
    }
    first.release().await?;
    for result in waiters.join_all().await {
        result.context("every waiter must have its turn")?;
    }
    let turns = turns.lock().clone();
    ensure!(turns.is_sorted(), "the turns were {turns:?}");
    family.nothing_left(&name).await
}

/// A waiter's future and a guard are dropped outside any runtime, or after their caller's runtime has ended. The
/// client's own runtime releases them.
#[apply(one_server!)]
async fn what_is_dropped_outside_a_runtime_is_given_back<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    let held = take(&process.lock(&name)).await?;
    let waiter = process.lock(&name);
    let mut waiting = Box::pin(async move { waiter.acquire(SOON).await.map(drop) });
    beside(&mut waiting, family.until_queued(&name, 2)).await?;
    outside(move || drop(waiting))?;
    held.release().await?;
    for stays in [false, true] {
        let lock = process.lock(&name);
        outside(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let guard = runtime.block_on(async {
                let guard = take(&lock).await?;
                Ok::<_, anyhow::Error>(Some(guard).filter(|_| stays))
            });
            drop(runtime);
            guard.map(drop)
        })??;
    }
    pass(&process.lock(&name)).await?;
    family.nothing_left(&name).await
}

/// Runs `work` in a thread without a runtime.
fn outside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let thread = std::thread::spawn(work);
    thread.join().map_err(|_| anyhow::anyhow!("it panicked"))
}
