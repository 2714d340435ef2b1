//! `/course`: every claim of the documents, what a student types to see it, and the verdicts of the last run.

use crate::{
    course::{
        self, Chapter,
        kept::{self, Kept},
        places::Places,
    },
    ctx::Ctx,
    http::{
        app::AppState,
        error::Error,
        extract::{Admin, Json},
    },
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use garde::Validate;
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The chapters.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Course {
    chapters: Vec<Chapter>,
}

/// What a run has found.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Verdicts {
    /// Where and how it was run.
    #[garde(skip)]
    #[schema(value_type = Object)]
    conditions: Map<String, Value>,
    /// A verdict for each lesson that was run.
    #[garde(length(min = 1, max = 1000), dive)]
    lessons: Vec<LessonSeen>,
}

/// What a lesson came to, as `oversell course --json` writes it.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
pub(in crate::http) struct LessonSeen {
    /// One of `GET /course`.
    #[garde(custom(a_lesson))]
    #[schema(example = "2.3")]
    id: String,
    #[garde(skip)]
    verdict: course::Verdict,
    #[garde(dive)]
    seen: InBoth,
    /// The figures and whatever else the command writes.
    #[garde(skip)]
    #[serde(flatten)]
    #[schema(value_type = Object)]
    more: Map<String, Value>,
}

/// What was seen, in both languages.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct InBoth {
    #[garde(length(chars, max = 2000))]
    zh: String,
    #[garde(length(chars, max = 2000))]
    en: String,
}

/// The verdicts that are kept.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct LastVerdicts {
    /// When the last run ended.
    at: DateTime<Utc>,
    /// Where and how that was run.
    conditions: Value,
    /// Each lesson as it was last run.
    #[schema(value_type = Vec<LessonSeen>)]
    lessons: Vec<Value>,
}

/// Every claim of the documents, chapter by chapter.
#[utoipa::path(get, path = "/course", tag = "course",
    responses((status = 200, description = "The chapters and their lessons", body = Course)))]
pub(in crate::http) async fn list(State(app): State<AppState>) -> axum::Json<Course> {
    let places = places(&app.ctx);
    let chapters = course::ALL.iter().map(|chapter| places.fill(chapter));
    axum::Json(Course {
        chapters: chapters.collect(),
    })
}

/// The verdicts of the last run, the same on each instance.
#[utoipa::path(get, path = "/course/verdicts", tag = "course",
    responses(
        (status = 200, description = "What the last run has found of each lesson", body = LastVerdicts),
        (status = 204, description = "There was no run yet"),
    ))]
pub(in crate::http) async fn last(State(app): State<AppState>) -> Result<Response, Error> {
    Ok(match kept::last(&app.ctx).await? {
        Some(Kept {
            at,
            conditions,
            lessons,
        }) => axum::Json(LastVerdicts {
            at,
            conditions,
            lessons,
        })
        .into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Keeps the verdicts of a run; those of other lessons stay.
#[utoipa::path(put, path = "/course/verdicts", tag = "course", request_body = Verdicts, security((), ("admin" = [])),
    responses((status = 204, description = "They are kept")))]
pub(in crate::http) async fn keep(
    _: Admin,
    State(app): State<AppState>,
    Json(verdicts): Json<Verdicts>,
) -> Result<StatusCode, Error> {
    let text = |lesson: &LessonSeen| serde_json::to_string(lesson).unwrap_or_default();
    let lessons: Vec<_> = verdicts
        .lessons
        .iter()
        .map(|lesson| (lesson.id.as_str(), text(lesson)))
        .collect();
    kept::keep(&app.ctx, &verdicts.conditions, &lessons).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where this cluster's servers are, as its configuration has them.
fn places(ctx: &Ctx) -> Places {
    let config = &ctx.config;
    let redis: Vec<_> = match &config.redis.nodes[..] {
        [] => vec![config.redis.url.expose_secret()],
        nodes => nodes.iter().map(ExposeSecret::expose_secret).collect(),
    };
    let (cluster, mysql) = (&config.cluster, config.mysql.url.expose_secret());
    Places::new(
        &cluster.http,
        &cluster.instances,
        mysql,
        &redis,
        &config.zookeeper.connect,
    )
}

fn a_lesson(id: &str, (): &()) -> garde::Result {
    match course::find(id) {
        Some(_) => Ok(()),
        None => Err(garde::Error::new(format!(
            "{id} is no lesson of GET /course"
        ))),
    }
}
