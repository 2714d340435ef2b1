//! The ceiling of generator and target together: the rate of an answer that needs no stock, which no strategy can beat.
//!
//! An instance is asked whether it lives, nginx for a static file.

use super::{
    engine::{Load, Until},
    history::{AnswerDetails, Outcome},
    link::Origin,
    plan::{ONE_INSTANCE, Timed},
    stock_api,
    terminal::stopped_by_signal,
};
use oversell_lab::terminal::{
    chinese::localized,
    failure::{Failure, unusable, unusable_localized},
};
use serde::Serialize;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The smallest file that a lab serves, and a path that every cluster serves.
const STATIC_PATHS: [&str; 2] = ["/favicon.svg", "/"];
/// A path that every instance answers without asking a server.
const LIVENESS_PATHS: [&str; 1] = ["/health/live"];
/// Warm-up and measurement; short, because a path that asks no server reaches its rate at once.
const CEILING_TIME: Timed = Timed::closed(Duration::from_millis(300), Duration::from_secs(1));
/// Above this share of the ceiling the generator takes so much of the cores that it is measured, not the strategy.
const BOUNDED_SHARE: f64 = 0.7;

/// The measured ceiling of one target: how many answers per second it gives without selling.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ceiling {
    pub(super) target: String,
    pub(super) path: &'static str,
    /// The size of the body of an answer.
    pub(super) bytes: usize,
    /// Connections.
    pub(super) threads: usize,
    /// Answers per second.
    pub(super) throughput: f64,
}

impl Ceiling {
    /// Measures the ceiling of the target at `base`.
    /// Errors: [`Failure::Unusable`] where nothing is served there or a request fails, [`Failure::Interrupted`] on `cancel`.
    pub(super) async fn measure(target: &str, base: &str, threads: usize, cancel: &CancellationToken) -> Result<Self, Failure> {
        let origin = Origin::parse(base)?;
        let (path, bytes) = first_served(base, if target == ONE_INSTANCE { &LIVENESS_PATHS } else { &STATIC_PATHS }).await?;
        let request = origin.request(http::Method::GET, path)?;
        let load = Load {
            origin,
            make_request: Box::new(move |_| request.clone()),
            read_answer: Box::new(|_, status, _| (outcome(status), AnswerDetails::default())),
            threads,
            until: Until::Over(CEILING_TIME),
            draws: false,
        };
        let ended = load.send(cancel, |_| std::future::pending()).await?;
        if cancel.is_cancelled() {
            return Err(stopped_by_signal());
        }
        match ended.counted.reasons.iter().next() {
            Some((why, _)) => Err(unusable!("GET {path} at {base}: {why}")),
            None => Ok(Self { target: target.into(), path, bytes, threads, throughput: ended.stats.throughput }),
        }
    }

    /// Whether this many answers per second are so near to the ceiling that the generator bounds them.
    pub(super) fn is_reached_by(&self, throughput: f64) -> bool {
        throughput > BOUNDED_SHARE * self.throughput
    }

    /// Names the request by which the ceiling was measured.
    pub(super) fn describe(&self) -> String {
        let of = if self.target == ONE_INSTANCE {
            localized!("直接请求一个实例", "one instance, directly")
        } else {
            localized!("同一地址的静态文件", "a static file from the same address")
        };
        let Self { path, bytes, .. } = self;
        localized!("{of}（GET {path}，{bytes} 字节）", "{of} (GET {path}, {bytes} bytes)")
    }
}

/// The first of these paths that is served, and the size of its answer.
async fn first_served(base: &str, paths: &[&'static str]) -> Result<(&'static str, usize), Failure> {
    for path in paths {
        if let Some(bytes) = stock_api::body_size(base, path).await {
            return Ok((path, bytes));
        }
    }
    let paths = paths.join(&localized!("，也没有 ", " or "));
    Err(unusable_localized!("{base} 没有 {paths}", "{base} does not serve {paths}"))
}

/// Counts an answer of the path like a sale: 200 as sold, every other status as refused.
fn outcome(status: u16) -> Outcome {
    if status == 200 { Outcome::Sold } else { Outcome::Refused(status.to_string()) }
}
