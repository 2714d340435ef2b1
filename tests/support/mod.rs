pub(crate) mod buyers;
pub(crate) mod http;
pub(crate) mod labs;
pub(crate) mod leftovers;
mod servers;

pub(crate) use crate::{
    harness::{caught, soak},
    register::{soak_test, test},
};
pub(crate) use anyhow::{Context, Result, bail, ensure};
pub(crate) use labs::program;
pub(crate) use macro_rules_attribute::apply;
pub(crate) use servers::{Servers, Site, config, migrate, servers_alone, shelf};

use futures::future::BoxFuture;
use oversell::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job},
};
pub(crate) use std::time::Duration;

pub(crate) type Deduct = for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Deduction, Error>>;

/// Longest wait for something that must happen.
pub(crate) const TEST_WAIT_LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn wait_until<F: Future<Output = Result<bool>>>(what: &str, holds: impl Fn() -> F) -> Result<()> {
    wait_until_every(Duration::from_millis(5), what, holds).await
}

/// With an interval of its own, for expensive checks.
pub(crate) async fn wait_until_every<F: Future<Output = Result<bool>>>(
    every: Duration,
    what: &str,
    holds: impl Fn() -> F,
) -> Result<()> {
    let looks = async {
        while !holds().await? {
            tokio::time::sleep(every).await;
        }
        Ok(())
    };
    within_limit(what, looks).await?
}

/// Fails if it takes longer than [`TEST_WAIT_LIMIT`].
pub(crate) async fn within_limit<T>(what: &str, coming: impl Future<Output = T>) -> Result<T> {
    let waited = tokio::time::timeout(TEST_WAIT_LIMIT, coming).await;
    waited.with_context(|| format!("never: {what}"))
}

/// Repetitions of what must happen every time.
pub(crate) fn repetitions() -> usize {
    if soak() { 10 } else { 2 }
}
