//! What every test here uses.

use std::time::Duration;

pub(crate) use super::{
    contender::Contender,
    harness::caught,
    object::Kind,
    ours::Process,
    pair::Pair,
    peer::{Library, Peer},
    register::clause,
    server::Server,
};
pub(crate) use anyhow::{Context, Result, bail, ensure};
pub(crate) use macro_rules_attribute::apply;

/// A test that runs longer hangs.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// The limit of what must happen.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A wait that ends, but not before a busy machine has seen the waiter and another one behind it.
pub(crate) const VISIBLE_WAIT: Duration = Duration::from_secs(5);

/// A wait that should end without the lock.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) async fn until<F: Future<Output = Result<bool>>>(what: &str, condition: impl Fn() -> F) -> Result<()> {
    let holds = async {
        while !condition().await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    };
    tokio::time::timeout(SOON, holds).await.with_context(|| format!("never came: {what}"))?
}

/// Checks that none of these acquires now.
pub(crate) async fn refused<const N: usize>(contenders: [&mut Contender; N]) -> Result<()> {
    for contender in contenders {
        let got = contender.try_within(Duration::ZERO).await?;
        ensure!(!got, "{contender} got it beside the others");
    }
    Ok(())
}
