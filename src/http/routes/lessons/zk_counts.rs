//! `/test/zk/share/count` and `/test/zk/atomic/*`: numbers that all instances see.

use crate::http::{
    app::App,
    extract::FromQuery,
    format::Format,
    problem::{Outcome, Problem},
    routes::check::Terms,
    routes::lessons::job,
};
use crate::{
    classroom::zk_counts::{self, Change},
    error::Error,
};
use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    response::{IntoResponse, Response},
};
use http::{header, request::Parts};
use serde::Serialize;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const CHANGES: [&str; 7] = ["increment", "decrement", "add", "subtract", "get", "try-set", "force-set"];

/// What the shared count was and is.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Shared {
    outcome: Outcome,
    /// The node.
    #[schema(example = "/curator/count")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// What it was.
    #[schema(example = 0)]
    before: i32,
    /// What it is.
    #[schema(example = 617)]
    after: i32,
}

/// What came of a change to the atomic long.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct Changed {
    outcome: Outcome,
    /// The node.
    #[schema(example = "/curator/atomic")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// Whether it was made. If not, others were faster all the time, and nothing was changed.
    succeeded: bool,
    /// What it was.
    #[schema(example = 41)]
    pre_value: i64,
    /// What it is.
    #[schema(example = 42)]
    post_value: i64,
    /// Whether it took the mutex, because others were faster at first.
    promoted: bool,
}

/// The operand, and what may be asked of every lesson.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Operand {
    /// What to add, to take away or to set; `add`, `subtract`, `try-set` and `force-set` need it.
    #[param(value_type = Option<i64>, required = false, example = 5)]
    value: Option<i64>,
    #[param(ignore)]
    terms: Terms,
}

/// Reads the shared count and sets it to a number at random.
#[utoipa::path(get, path = "/test/zk/share/count", tag = "course", params(Terms), operation_id = "test_zk_share_count",
    responses(
        (status = 200, description = "It was read and set",
            content((String = "text/plain", example = "hello shareData"), (Shared = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "ZooKeeper is down, or did not answer: then it may have been set", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn share(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let (before, after) = zk_counts::share(&app.ctx, &job(&app, &terms, Duration::ZERO)).await?;
    Ok(match format {
        Format::Text => ([(header::CONTENT_TYPE, Format::TEXT)], "hello shareData").into_response(),
        Format::Json => {
            let (outcome, instance) = (Outcome::Done, app.ctx.instance.clone());
            Json(Shared { outcome, strategy: "/curator/count", instance, before, after }).into_response()
        }
    })
}

/// Changes the atomic long, or reads it.
#[utoipa::path(get, path = "/test/zk/atomic/{change}", tag = "course", operation_id = "test_zk_atomic",
    params(("change" = String, Path, description = "increment, decrement, add, subtract, get, try-set or force-set", example = "increment"), Operand, Terms),
    responses(
        (status = 200, description = "It was changed, or others were faster all the time (`succeeded`)",
            content((String = "text/plain", example = "true 41 -> 42"), (Changed = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "ZooKeeper is down, or did not answer: then it may have been changed", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn atomic(
    State(app): State<App>,
    Path(change): Path<String>,
    operand: Operand,
    format: Format,
) -> Result<Response, Error> {
    let job = job(&app, &operand.terms, Duration::ZERO);
    let value = || operand.value.ok_or_else(|| bad("value", "is missing"));
    let change = match change.as_str() {
        "increment" => Some(Change::Add(1)),
        "decrement" => Some(Change::Subtract(1)),
        "add" => Some(Change::Add(value()?)),
        "subtract" => Some(Change::Subtract(value()?)),
        "try-set" => Some(Change::TrySet(value()?)),
        "force-set" => Some(Change::ForceSet(value()?)),
        "get" => None,
        _ => return Err(bad("change", &format!("must be one of {}", CHANGES.join(", ")))),
    };
    let (succeeded, pre_value, post_value, promoted) = match change {
        Some(change) => {
            let made = zk_counts::change(&app.ctx, &job, change).await?;
            (made.succeeded, made.before, made.after, made.promoted)
        }
        None => {
            let value = zk_counts::get(&app.ctx, &job).await?;
            (true, value, value, false)
        }
    };
    Ok(match format {
        Format::Text => {
            let text = format!("{succeeded} {pre_value} -> {post_value}");
            ([(header::CONTENT_TYPE, Format::TEXT)], text).into_response()
        }
        Format::Json => {
            let (outcome, instance) = (Outcome::Done, app.ctx.instance.clone());
            let strategy = "/curator/atomic";
            Json(Changed { outcome, strategy, instance, succeeded, pre_value, post_value, promoted }).into_response()
        }
    })
}

impl<S: Sync> FromRequestParts<S> for Operand {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let FromQuery(fields) = FromQuery::from_request_parts(parts, state).await?;
        Ok(Self { value: fields.number("value", i64::MIN..=i64::MAX)?, terms: Terms::among(&fields, &["value"])? })
    }
}

fn bad(field: &str, rule: &str) -> Error {
    Error::BadInput { field: field.into(), rule: rule.into() }
}
