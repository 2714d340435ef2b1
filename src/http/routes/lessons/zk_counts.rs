//! `/test/zk/share/count` and `/test/zk/atomic/*`: numbers that all instances see.

use crate::{
    classroom::zk_counts::{self, Change},
    http::{
        app::AppState,
        error::Error,
        extract::{Path, Query},
        format::Format,
        problem::Outcome,
        terms::{Terms, terms},
    },
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

const CHANGES: [&str; 7] = [
    "increment",
    "decrement",
    "add",
    "subtract",
    "get",
    "try-set",
    "force-set",
];

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
    /// Who asked, where a name was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
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
    /// Who asked, where a name was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
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

terms!(
    /// The operand, and what may be asked of every lesson.
    Operand {
        /// What to add, to take away or to set; `add`, `subtract`, `try-set` and `force-set` need it.
        #[garde(skip)]
        #[param(example = 5)]
        value: Option<i64>,
    }
);

/// Reads the shared count and sets it to a number at random.
#[utoipa::path(get, path = "/test/zk/share/count", tag = "course", params(Terms),
    responses((status = 200, description = "It was read and set",
        content((String = "text/plain", example = "hello shareData"), (Shared = "application/json")))))]
pub(in crate::http) async fn share(
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let job = terms.job(app.ctx.config.wait(), Duration::ZERO);
    let (before, after) = zk_counts::share(&app.ctx, &job).await?;
    Ok(match format {
        Format::Text => ([(header::CONTENT_TYPE, Format::TEXT)], "hello shareData").into_response(),
        Format::Json => {
            let (outcome, instance, who) =
                (Outcome::Done, app.ctx.instance.clone(), job.who.clone());
            Json(Shared {
                outcome,
                strategy: "/curator/count",
                instance,
                who,
                before,
                after,
            })
            .into_response()
        }
    })
}

/// Changes the atomic long, or reads it.
#[utoipa::path(get, path = "/test/zk/atomic/{change}", tag = "course",
    params(("change" = String, Path, description = "increment, decrement, add, subtract, get, try-set or force-set", example = "increment"), Operand),
    responses((status = 200, description = "It was changed, or others were faster all the time (`succeeded`)",
        content((String = "text/plain", example = "true 41 -> 42"), (Changed = "application/json")))))]
pub(in crate::http) async fn atomic(
    State(app): State<AppState>,
    Path(change): Path<String>,
    Query(operand): Query<Operand>,
    format: Format,
) -> Result<Response, Error> {
    let job = operand.job(app.ctx.config.wait(), Duration::ZERO);
    let value = || {
        operand
            .value
            .ok_or_else(|| Error::bad_input("value", "is missing"))
    };
    let change = match change.as_str() {
        "increment" => Some(Change::Add(1)),
        "decrement" => Some(Change::Subtract(1)),
        "add" => Some(Change::Add(value()?)),
        "subtract" => Some(Change::Subtract(value()?)),
        "try-set" => Some(Change::TrySet(value()?)),
        "force-set" => Some(Change::ForceSet(value()?)),
        "get" => None,
        _ => {
            return Err(Error::bad_input(
                "change",
                format!("must be one of {}", CHANGES.join(", ")),
            ));
        }
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
            let (outcome, instance, who) =
                (Outcome::Done, app.ctx.instance.clone(), job.who.clone());
            let strategy = "/curator/atomic";
            Json(Changed {
                outcome,
                strategy,
                instance,
                who,
                succeeded,
                pre_value,
                post_value,
                promoted,
            })
            .into_response()
        }
    })
}
