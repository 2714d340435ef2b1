//! `/test/semaphore`, `/test/latch`, `/test/countdown`: the lessons for several browser windows.

pub(in crate::http) mod redis;
pub(in crate::http) mod zk_barriers;
pub(in crate::http) mod zk_counts;
pub(in crate::http) mod zk_herd;
pub(in crate::http) mod zk_locks;

use crate::http::{
    app::App,
    format::Format,
    problem::{Outcome, Problem},
    routes::check::Terms,
};
use crate::{
    classroom::{latch, semaphore},
    error::Error,
    stock::Job,
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// What a lesson answers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Lesson {
    outcome: Outcome,
    /// How many must still go out, where the lesson counts.
    #[schema(example = 5)]
    remaining: Option<u64>,
    /// The object that was used.
    #[schema(example = "semaphore")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// How long it took to get in.
    #[schema(example = 3)]
    waited_ms: u128,
    /// How long it was inside.
    #[schema(example = 5001)]
    held_ms: u128,
    /// None of these has a fencing token.
    fence: Option<u64>,
}

/// Three are inside at once, each for five seconds.
#[utoipa::path(get, path = "/test/semaphore", tag = "course", params(Terms), operation_id = "test_semaphore",
    responses(
        (status = 200, description = "It was inside, and has left",
            content((String = "text/plain", example = "测试信号量"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nobody has left in time, or Redis is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn semaphore(
    State(app): State<App>,
    terms: Terms,
    format: Format,
) -> Result<Response, Error> {
    let job = job(&app, &terms, semaphore::STAY);
    semaphore::visit(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "semaphore", "测试信号量", None))
}

/// Waits until six have gone out, and locks the door.
#[utoipa::path(get, path = "/test/latch", tag = "course", params(Terms), operation_id = "test_latch",
    responses(
        (status = 200, description = "All six are out",
            content((String = "text/plain", example = "班长锁门。。。"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Some stayed in, or Redis is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn latch(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, Duration::ZERO);
    latch::lock_the_door(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "latch", "班长锁门。。。", Some(0)))
}

/// One goes out. The first of a class sets the count to six.
#[utoipa::path(get, path = "/test/countdown", tag = "course", params(Terms), operation_id = "test_countdown",
    responses(
        (status = 200, description = "One less is in",
            content((String = "text/plain", example = "出来了一位同学"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Redis is down, or did not answer: then it may have counted", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn countdown(
    State(app): State<App>,
    terms: Terms,
    format: Format,
) -> Result<Response, Error> {
    let job = job(&app, &terms, Duration::ZERO);
    let left = latch::go_out(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "latch", "出来了一位同学", Some(left)))
}

pub(in crate::http) fn job(app: &App, terms: &Terms, stay: Duration) -> Job {
    let wait = terms.wait_ms.unwrap_or_else(|| app.ctx.config.wait());
    Job::new(terms.stock_id, terms.hold_ms.unwrap_or(stay), wait)
}

pub(in crate::http) fn answer(
    app: &App,
    job: &Job,
    format: Format,
    strategy: &'static str,
    text: &'static str,
    remaining: Option<u64>,
) -> Response {
    match format {
        Format::Text => ([(header::CONTENT_TYPE, Format::TEXT)], text).into_response(),
        Format::Json => Json(Lesson {
            outcome: Outcome::Done,
            remaining,
            strategy,
            instance: app.ctx.instance.clone(),
            waited_ms: job.waited().as_millis(),
            held_ms: job.held().as_millis(),
            fence: None,
        })
        .into_response(),
    }
}
