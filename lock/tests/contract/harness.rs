//! What the test binaries of both packages share: how a test ends, what is too slow for every change, and how a twin is
//! caught.

use anyhow::{Result, bail};
use futures::future::LocalBoxFuture;
use libtest_mimic::Failed;
use std::{fmt::Debug, time::Duration};
use tokio::time::timeout;

/// A running test.
pub(crate) type Ends = LocalBoxFuture<'static, Result<()>>;

/// Whether slow tests run too: `OVERSELL_SOAK=1`, as `make soak` sets it.
pub(crate) fn soak() -> bool {
    std::env::var_os("OVERSELL_SOAK").is_some_and(|soak| soak == "1")
}

/// A test's result; it fails if it has not ended within `hangs`.
pub(crate) async fn outcome(test: Ends, hangs: Duration) -> Result<(), Failed> {
    timeout(hangs, test)
        .await
        .map_err(|_| Failed::from(format!("not ended after {hangs:?}")))?
        .map_err(|broken| Failed::from(format!("{broken:?}")))
}

/// The broken twin must have failed, for this reason: a clause that lets its twin pass cannot fail.
pub(crate) fn caught<T: Debug>(verdict: Result<T>, by: &str) -> Result<()> {
    match verdict {
        Err(broken) if format!("{broken:#}").contains(by) => Ok(()),
        Err(other) => Err(other.context("caught, but for another reason")),
        Ok(passed) => bail!("the twin passed: {passed:?}"),
    }
}
