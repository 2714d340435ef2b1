//! What every test uses: names, waits, and checks of results.

use oversell_lab::lab::Options;
use oversell_lock::Fence;
use std::{
    fmt::Debug,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    task::Poll,
};

pub(crate) use super::{
    etcd::Etcd,
    family::{AnyLock, Ask, Contender, Family, Kind, Server},
    harness::caught,
    mute::Mute,
    redis::Redis,
    redis::redlock::Five,
    register::{Test, soak_test, test},
    table::Table,
    zookeeper::ZooKeeper,
};
pub(crate) use anyhow::{Context, bail, ensure};
pub(crate) use futures::future::{join_all, try_join_all};
pub(crate) use macro_rules_attribute::apply;
pub(crate) use oversell_lab::{
    clients::proxy::{Condition, Proxy},
    lab::{Lab, Part},
};
pub(crate) use oversell_lock::{Guard, Lease, Lock, LockError, Owner, Process};
pub(crate) use std::{pin::pin, sync::Arc, time::Duration};
pub(crate) use tokio::{
    task::{JoinHandle, JoinSet},
    time::timeout,
};

/// The result of a test or of a step.
pub(crate) type Result<T = (), E = anyhow::Error> = std::result::Result<T, E>;

/// The result of a call of the library.
pub(crate) type Answer<T = ()> = Result<T, LockError>;

/// Long enough for whatever must happen; nothing waits for all of it.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A wait that should end without the lock.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// An endless wait, with which no arithmetic works.
pub(crate) const FOR_EVER: Duration = Duration::MAX;

/// A name that no other test uses, and that is no prefix of another's.
pub(crate) fn name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, SeqCst);
    format!("/contract/{}-{next:06}", std::process::id())
}

/// A lab for one test: this many servers of one kind.
pub(crate) async fn lab(part: Part, servers: u16, sentinels: u16) -> Result<Lab> {
    let mut options = Options {
        without: vec![Part::MySql, Part::Instances, Part::Nginx],
        redis_ports: vec![0],
        sentinels,
        ..Options::default()
    };
    let others = [Part::Redis, Part::ZooKeeper].into_iter().filter(|other| *other != part);
    options.without.extend(others);
    match part {
        Part::Redis => options.redis_ports = vec![0; servers.into()],
        Part::Etcd => options.etcd = servers,
        _ => options.zookeeper = servers,
    }
    Ok(Lab::start(options).await?)
}

pub(crate) async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) -> Result {
    let holds = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, holds).await.with_context(|| format!("never came: {what}"))
}

/// Polls the future until it was pending `times` times, then drops it and what it returned.
pub(crate) async fn drop_after(times: u32, dropped: impl Future) {
    let mut left = times;
    let mut dropped = pin!(dropped);
    std::future::poll_fn(|context| match dropped.as_mut().poll(context) {
        Poll::Pending if left > 0 => {
            left -= 1;
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}

pub(crate) fn ensure_equal<T: PartialEq<U> + Debug, U: Debug>(what: &str, seen: T, wanted: U) -> Result {
    ensure!(seen == wanted, "{what}: {seen:?} instead of {wanted:?}");
    Ok(())
}

pub(crate) fn ensure_none<T: Debug>(left: Vec<T>) -> Result {
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// Checks that the guard is not lost, by report or by the clock.
pub(crate) fn ensure_kept(what: &str, guard: &Guard) -> Result {
    ensure!(!guard.is_lost(), "{what} was lost");
    Ok(())
}

/// Runs `work` while `waiting` waits.
pub(crate) async fn beside<T: Debug>(
    waiting: &mut (impl Future<Output = T> + Unpin),
    comes: impl Future<Output = Result>,
) -> Result {
    tokio::select! {
        biased;
        ended = waiting => bail!("it did not wait: {ended:?}"),
        came = comes => came,
    }
}

/// Waits until the guard is lost.
pub(crate) async fn wait_until_lost(guard: &Guard) -> Result {
    timeout(SOON, guard.lost()).await.context("the holder was never told of its loss")
}

/// Acquires a lock that is or becomes free.
pub(crate) async fn take(lock: &impl Lock) -> Result<Guard> {
    lock.acquire(SOON).await.context("the lock must be acquired")
}

/// Acquires and releases.
pub(crate) async fn pass(lock: &impl Lock) -> Result {
    Ok(take(lock).await?.release().await?)
}

/// A waiter.
pub(crate) fn spawn_acquire(lock: impl Lock + 'static) -> JoinHandle<Answer<Guard>> {
    tokio::spawn(async move { lock.acquire(SOON).await })
}

/// A waiter that releases at once.
pub(crate) fn spawn_pass(lock: impl Lock + 'static) -> JoinHandle<Answer> {
    tokio::spawn(async move { lock.acquire(SOON * 3).await?.release().await })
}

macro_rules! comes_to {
    ($($name:ident: $kind:ident),*) => {$(
        pub(crate) fn $name<T: Debug>(what: &str, result: Answer<T>) -> Result {
            ensure!(matches!(result, Err(LockError::$kind { .. })), "{what}: {result:?}");
            Ok(())
        }
    )*};
}

comes_to! {
    ensure_taken: Taken,
    ensure_timed_out: Timeout,
    ensure_lost: Lost,
    ensure_unavailable: Unavailable,
    ensure_refused: Refused,
    ensure_invalid: Invalid
}

/// A twin: a lock with this name and this `acquire`.
pub(crate) fn fixed_lock<T, F>(name: &str, of: T, acquire: impl Fn(T, String, Duration) -> F + Send + Sync + 'static) -> AnyLock
where
    T: Clone + Send + Sync + 'static,
    F: Future<Output = Answer<Guard>> + Send + 'static,
{
    let path = name.to_owned();
    let acquire = move |wait| acquire(of.clone(), path.clone(), wait);
    FixedLock(name.to_owned(), acquire).boxed()
}

struct FixedLock<F>(String, F);

impl<F, A> Lock for FixedLock<F>
where
    F: Fn(Duration) -> A + Send + Sync,
    A: Future<Output = Answer<Guard>> + Send,
{
    fn name(&self) -> &str {
        &self.0
    }

    fn acquire(&self, wait: Duration) -> impl Future<Output = Answer<Guard>> + Send {
        (self.1)(wait)
    }
}

/// A guard that never learns of a loss, with this release.
pub(crate) fn guard(name: &str, fence: Option<Fence>, release: impl Future<Output = Answer> + Send + 'static) -> Guard {
    let (guard, mut keeper) = Guard::new(name, fence);
    tokio::spawn(async move { keeper.release_requested().await.done(release.await) });
    guard
}

/// The error of a wait that ended without the lock.
pub(crate) fn wait_over_error(name: &str, waited: Duration) -> LockError {
    let name = name.to_owned();
    LockError::Taken { name, waited }
}

/// Repeats `check`, for a flaw that does not show each time: the first failure in twenty tries.
pub(crate) async fn in_some_try<F: Future<Output = Result>>(check: impl Fn() -> F) -> Result {
    for _ in 0..20 {
        check().await?;
    }
    Ok(())
}
