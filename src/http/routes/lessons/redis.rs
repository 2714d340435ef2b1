//! `/test/read`, `/test/write`, `/test/fair`, `/test/multi`, `/test/red`, `/test/reentrant`: locks to be tried from
//! several browser windows.

use crate::http::{
    app::App,
    format::Format,
    problem::{Outcome, Problem},
    routes::check::Terms,
    routes::lessons::{Lesson, answer, job},
};
use crate::{
    classroom::{
        fair, multi, read_write, reentrant,
        visit::{Step, Visit},
    },
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
use std::{fmt::Write, time::Duration};
use utoipa::ToSchema;

/// What a lesson on a lock answers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Visited {
    outcome: Outcome,
    /// The lock.
    #[schema(example = "fairLock")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// Who held it: the field in the lock's hash.
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b:7")]
    holder: String,
    /// What the holder did, in order.
    steps: Vec<Step>,
    /// How long it took to get in.
    #[schema(example = 3)]
    waited_ms: u128,
    /// How long it was inside.
    #[schema(example = 1)]
    held_ms: u128,
}

/// Takes the read half of the read-write lock and leaves it to its lease of ten seconds.
#[utoipa::path(get, path = "/test/read", tag = "course", params(Terms), operation_id = "test_read",
    responses(
        (status = 200, description = "It has the read half, together with other readers",
            content((String = "text/plain", example = "测试读"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "A writer has it for all of the wait, or Redis is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn read(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, read_write::LEASE);
    read_write::read(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "rwLock", "测试读", None))
}

/// Takes the write half of the read-write lock and leaves it to its lease of ten seconds.
#[utoipa::path(get, path = "/test/write", tag = "course", params(Terms), operation_id = "test_write",
    responses(
        (status = 200, description = "It has the write half, alone",
            content((String = "text/plain", example = "测试写"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Others have it for all of the wait, or Redis is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn write(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, read_write::LEASE);
    read_write::write(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "rwLock", "测试写", None))
}

/// A handler that makes a visit and tells it.
macro_rules! lesson {
    ($(#[$doc:meta])* $name:ident, $path:literal, $operation:literal, $lock:literal, $example:literal, $visit:path) => {
        $(#[$doc])*
        #[utoipa::path(get, path = $path, tag = "course", params(Terms), operation_id = $operation,
            responses(
                (status = 200, description = "It was inside, and has left",
                    content((String = "text/plain", example = $example), (Visited = "application/json"))),
                (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
                (status = 409, description = "The lock was lost inside", body = Problem, content_type = "application/problem+json"),
                (status = 503, description = "Not had within the wait, or Redis is down", body = Problem,
                    content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
            ))]
        pub(in crate::http) async fn $name(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
            let job = job(&app, &terms, Duration::ZERO);
            let visit = $visit(&app.ctx, &job).await?;
            Ok(told(&app, &job, format, $lock, visit))
        }
    };
}

pub(in crate::http) use lesson;

lesson!(
    /// Queues at the fair lock, and says as which number it came and got in.
    fair, "/test/fair", "test_fair", "fairLock", "来到 fairLock #2\n拿到 fairLock #2\n放掉 fairLock #2\n", fair::visit
);
lesson!(
    /// Takes three locks as one.
    multi, "/test/multi", "test_multi", "lock1,lock2,lock3", "拿到 lock1 #1\n拿到 lock2 #2\n拿到 lock3 #3\n放掉 lock3 #3\n…", multi::all
);
lesson!(
    /// Takes a lock on most of five nodes, and says on which.
    red, "/test/red", "test_red", "redLock", "拿到 redLock #1\n拿到 redLock #2\n拿到 redLock #4\n…", multi::most
);
lesson!(
    /// Takes a lock twice as one owner, and says what Redis counts.
    reentrant, "/test/reentrant", "test_reentrant", "reentrantLock",
    "拿到 reentrantLock #1\n拿到 reentrantLock #2\n放掉 reentrantLock #1\n放掉 reentrantLock #0\n", reentrant::visit
);

/// The visit, as text or JSON.
pub(in crate::http) fn told(app: &App, job: &Job, format: Format, lock: &'static str, visit: Visit) -> Response {
    let (instance, holder) = (app.ctx.instance.clone(), visit.holder.to_string());
    match format {
        Format::Text => {
            let mut text = format!("持有者 {holder}，实例 {instance}\n");
            for step in &visit.steps {
                writeln!(text, "{step}").ok();
            }
            ([(header::CONTENT_TYPE, Format::TEXT)], text).into_response()
        }
        Format::Json => Json(Visited {
            outcome: Outcome::Done,
            strategy: lock,
            instance,
            holder,
            steps: visit.steps,
            waited_ms: job.waited().as_millis(),
            held_ms: job.held().as_millis(),
        })
        .into_response(),
    }
}
