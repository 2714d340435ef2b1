//! `/test/*`: the lessons for several browser windows, and what they share: the answer of one that took something and has
//! left, and of one that tells its visit step by step.

pub(in crate::http) mod demos;
pub(in crate::http) mod redis;
pub(in crate::http) mod zk_barriers;
pub(in crate::http) mod zk_counts;
pub(in crate::http) mod zk_herd;
pub(in crate::http) mod zk_locks;

use crate::{
    classroom::visit::{Step, Visit},
    http::{app::AppState, format::Format, problem::Outcome},
    stock::{Job, LockState},
};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::header;
use serde::Serialize;
use std::fmt::Write;
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
    /// Who asked, where a name was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
    /// How long it took to get in.
    #[schema(example = 3)]
    waited_ms: u128,
    /// How long it was inside.
    #[schema(example = 5001)]
    held_ms: u128,
    /// None of these has a fencing token.
    fence: Option<u64>,
    /// What the unlock found, where the lesson unlocks by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<LockState>,
}

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
    /// Who asked, where a name was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
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

/// A text of the course, alone or with its circumstances.
fn lesson_response(
    app: &AppState,
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
            who: job.who.clone(),
            waited_ms: job.waited().as_millis(),
            held_ms: job.held().as_millis(),
            fence: None,
            lock: None,
        })
        .into_response(),
    }
}

/// A visit to a lock, step by step.
fn visit_response(
    app: &AppState,
    job: &Job,
    format: Format,
    lock: &'static str,
    visit: Visit,
) -> Response {
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
            who: job.who.clone(),
            holder,
            steps: visit.steps,
            waited_ms: job.waited().as_millis(),
            held_ms: job.held().as_millis(),
        })
        .into_response(),
    }
}

/// A handler of a lesson that has answered once it was inside, or keeps what it took.
macro_rules! lesson {
    ($(#[$doc:meta])* $name:ident, $path:literal, $strategy:literal, $text:literal, $description:literal, $stay:expr, $visit:path) => {
        $(#[$doc])*
        #[utoipa::path(get, path = $path, tag = "course", params(crate::http::terms::Terms),
            responses((status = 200, description = $description,
                content((String = "text/plain", example = $text), (crate::http::routes::lessons::Lesson = "application/json")))))]
        pub(in crate::http) async fn $name(
            axum::extract::State(app): axum::extract::State<crate::http::app::AppState>,
            crate::http::extract::Query(terms): crate::http::extract::Query<crate::http::terms::Terms>,
            format: crate::http::format::Format,
        ) -> Result<axum::response::Response, crate::http::error::Error> {
            let job = app.seen(terms.job(app.ctx.config.wait(), $stay), $path, $strategy);
            $visit(&app.ctx, &job).await?;
            Ok(crate::http::routes::lessons::lesson_response(&app, &job, format, $strategy, $text, None))
        }
    };
}

/// A handler of a lesson that tells its visit to a lock.
macro_rules! visit {
    ($(#[$doc:meta])* $name:ident, $path:literal, $lock:literal, $example:literal, $visit:path) => {
        $(#[$doc])*
        #[utoipa::path(get, path = $path, tag = "course", params(crate::http::terms::Terms),
            responses(
                (status = 200, description = "It was inside, and has left",
                    content((String = "text/plain", example = $example), (crate::http::routes::lessons::Visited = "application/json"))),
                (status = 409, description = "The lock was lost inside"),
            ))]
        pub(in crate::http) async fn $name(
            axum::extract::State(app): axum::extract::State<crate::http::app::AppState>,
            crate::http::extract::Query(terms): crate::http::extract::Query<crate::http::terms::Terms>,
            format: crate::http::format::Format,
        ) -> Result<axum::response::Response, crate::http::error::Error> {
            let job = app.seen(terms.job(app.ctx.config.wait(), std::time::Duration::ZERO), $path, $lock);
            let visit = $visit(&app.ctx, &job).await?;
            Ok(crate::http::routes::lessons::visit_response(&app, &job, format, $lock, visit))
        }
    };
}

use {lesson, visit};
