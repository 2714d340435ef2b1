//! What every test uses: names, waits, and what a call must have come to.

use oversell_lock::{Guard, Lock, LockError};
use std::{
    fmt::Debug,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::task::JoinHandle;

pub(crate) use super::harness::caught;
pub(crate) use super::register::{Test, soak_test, test};
pub(crate) use anyhow::{Context, Result, bail, ensure};
pub(crate) use macro_rules_attribute::apply;

/// Long enough for whatever must happen; nothing waits for all of it.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A wait that is meant to end without the lock.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// A name that no other test uses, and that does not begin another's.
pub(crate) fn name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("/contract/{}-{next:06}", std::process::id())
}

/// Waits until `condition` holds.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Result<()> {
    let holds = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, holds)
        .await
        .with_context(|| format!("never came: {what}"))
}

/// Waits until the holder is told that its lock is lost.
pub(crate) async fn told(guard: &Guard) -> Result<()> {
    tokio::time::timeout(SOON, guard.lost())
        .await
        .context("the holder was never told of its loss")
}

/// The lock, which must be free or become so.
pub(crate) async fn take(lock: &impl Lock) -> Result<Guard> {
    lock.acquire(SOON)
        .await
        .context("the lock must be acquired")
}

/// Takes the lock and gives it back.
pub(crate) async fn pass(lock: &impl Lock) -> Result<()> {
    Ok(take(lock).await?.release().await?)
}

/// A waiter.
pub(crate) fn acquiring(lock: impl Lock + 'static) -> JoinHandle<Result<Guard, LockError>> {
    tokio::spawn(async move { lock.acquire(SOON).await })
}

/// A waiter that gives the lock back as soon as it has it.
pub(crate) fn passing(lock: impl Lock + 'static) -> JoinHandle<Result<(), LockError>> {
    tokio::spawn(async move { lock.acquire(SOON * 3).await?.release().await })
}

macro_rules! comes_to {
    ($($(#[$doc:meta])* $name:ident: $kind:ident),*) => {$(
        $(#[$doc])*
        pub(crate) fn $name<T: Debug>(what: &str, result: Result<T, LockError>) -> Result<()> {
            ensure!(matches!(result, Err(LockError::$kind { .. })), "{what}: {result:?}");
            Ok(())
        }
    )*};
}

comes_to! {
    /// Another held it for all of the wait.
    taken: Taken,
    /// What was to be released was lost before.
    lost: Lost,
    /// The server is down or did not answer.
    unavailable: Unavailable,
    /// The server answered with an error.
    refused: Refused,
    /// What was asked for cannot be.
    invalid: Invalid
}

/// What `check` comes to where a flaw is not seen each time: the first failure in twenty tries.
pub(crate) async fn in_some_try<F: Future<Output = Result<()>>>(
    check: impl Fn() -> F,
) -> Result<()> {
    for _ in 0..20 {
        check().await?;
    }
    Ok(())
}
