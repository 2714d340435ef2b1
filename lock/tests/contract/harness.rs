//! What the tests of both packages share, each in a binary that starts its servers itself: how a test ends, what takes too
//! long for every change, and how a twin is caught.

use anyhow::{Result, bail};
use futures::future::LocalBoxFuture;
use libtest_mimic::Failed;
use std::{fmt::Debug, time::Duration};
use tokio::time::timeout;

/// A test that runs.
pub(crate) type Ends = LocalBoxFuture<'static, Result<()>>;

/// Whether what takes long runs as well: `OVERSELL_SOAK=1`, as `make soak` sets it.
pub(crate) fn soak() -> bool {
    std::env::var_os("OVERSELL_SOAK").is_some_and(|soak| soak == "1")
}

/// What a test comes to, which hangs where it has not ended by then.
pub(crate) async fn outcome(test: Ends, hangs: Duration) -> Result<(), Failed> {
    timeout(hangs, test)
        .await
        .map_err(|_| Failed::from(format!("not ended after {hangs:?}")))?
        .map_err(|broken| Failed::from(format!("{broken:?}")))
}

/// The broken twin must have failed, and for this reason: a clause that lets its twin pass cannot fail.
pub(crate) fn caught<T: Debug>(verdict: Result<T>, by: &str) -> Result<()> {
    match verdict {
        Err(broken) if format!("{broken:#}").contains(by) => Ok(()),
        Err(other) => Err(other.context("caught, but for another reason")),
        Ok(passed) => bail!("the twin passed: {passed:?}"),
    }
}
