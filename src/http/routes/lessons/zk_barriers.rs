//! `/test/zk/barrier/*` and `/test/zk/double-barrier/*`: a gate for all, and a room that nobody begins in or leaves alone.

use crate::http::{
    app::App,
    extract::FromQuery,
    format::Format,
    problem::{Outcome, Problem},
    routes::check::Terms,
    routes::lessons::{Lesson, answer, job},
};
use crate::{classroom::zk_barriers, error::Error, stock::Job};
use axum::{
    Json,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use http::{header, request::Parts};
use serde::Serialize;
use std::{num::NonZeroU32, time::Duration};
use utoipa::{IntoParams, ToSchema};

const BARRIER: &str = "/curator/barrier";

/// So many may meet at most.
const MOST: i64 = 1000;

/// Who came in, or left.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Member {
    outcome: Outcome,
    /// The room.
    #[schema(example = "/curator/double-barrier")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// The node that was made, or is gone.
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    member: String,
    /// How long the others took.
    #[schema(example = 812)]
    waited_ms: u128,
}

/// Who meets, and what may be asked of every lesson.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Meeting {
    /// How many meet; every one of them says the same number.
    #[param(value_type = u32, minimum = 1, maximum = 1000, example = 3)]
    members: NonZeroU32,
    /// Who leaves; without it the last one that this instance has let in.
    #[param(required = false)]
    member: Option<String>,
    #[param(ignore)]
    terms: Terms,
}

/// Closes the barrier.
#[utoipa::path(get, path = "/test/zk/barrier/set", tag = "course", params(Terms), operation_id = "test_zk_barrier_set",
    responses(
        (status = 200, description = "It is closed", content((String = "text/plain", example = "栅栏已关上"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn set(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, Duration::ZERO);
    let text = if zk_barriers::set(&app.ctx, &job).await? { "栅栏已关上" } else { "栅栏本来就关着" };
    Ok(answer(&app, &job, format, BARRIER, text, None))
}

/// Waits until the barrier is open.
#[utoipa::path(get, path = "/test/zk/barrier/wait", tag = "course", params(Terms), operation_id = "test_zk_barrier_wait",
    responses(
        (status = 200, description = "It is open", content((String = "text/plain", example = "通过栅栏"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nobody opened it in time, or ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn wait(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, Duration::ZERO);
    zk_barriers::wait(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, BARRIER, "通过栅栏", None))
}

/// Opens the barrier.
#[utoipa::path(get, path = "/test/zk/barrier/remove", tag = "course", params(Terms), operation_id = "test_zk_barrier_remove",
    responses(
        (status = 200, description = "It is open", content((String = "text/plain", example = "栅栏已移除"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn remove(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, Duration::ZERO);
    let text = if zk_barriers::remove(&app.ctx, &job).await? { "栅栏已移除" } else { "栅栏本来就开着" };
    Ok(answer(&app, &job, format, BARRIER, text, None))
}

/// Comes in once enough have come.
#[utoipa::path(get, path = "/test/zk/double-barrier/enter", tag = "course", params(Meeting, Terms), operation_id = "test_zk_double_barrier_enter",
    responses(
        (status = 200, description = "All are inside",
            content((String = "text/plain", example = "都到齐了 6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b"), (Member = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Not enough came in time, or ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn enter(
    State(app): State<App>,
    meeting: Meeting,
    format: Format,
) -> Result<Response, Error> {
    let job = job(&app, &meeting.terms, Duration::ZERO);
    let member = zk_barriers::enter(&app.ctx, &job, meeting.members).await?;
    Ok(met(&app, &job, format, "都到齐了", member))
}

/// Leaves, and waits until all have left.
#[utoipa::path(get, path = "/test/zk/double-barrier/leave", tag = "course", params(Meeting, Terms), operation_id = "test_zk_double_barrier_leave",
    responses(
        (status = 200, description = "All have left",
            content((String = "text/plain", example = "都离开了 6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b"), (Member = "application/json"))),
        (status = 400, description = "The query is not as it should be, or there is no such member", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Some stayed in, or ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn leave(
    State(app): State<App>,
    meeting: Meeting,
    format: Format,
) -> Result<Response, Error> {
    let job = job(&app, &meeting.terms, Duration::ZERO);
    let member = zk_barriers::leave(&app.ctx, &job, meeting.members, meeting.member.as_deref()).await?;
    Ok(met(&app, &job, format, "都离开了", member))
}

fn met(app: &App, job: &Job, format: Format, text: &str, member: String) -> Response {
    match format {
        Format::Text => ([(header::CONTENT_TYPE, Format::TEXT)], format!("{text} {member}")).into_response(),
        Format::Json => {
            let (outcome, instance) = (Outcome::Done, app.ctx.instance.clone());
            let strategy = "/curator/double-barrier";
            Json(Member { outcome, strategy, instance, member, waited_ms: job.waited().as_millis() }).into_response()
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Meeting {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let FromQuery(fields) = FromQuery::from_request_parts(parts, state).await?;
        let terms = Terms::among(&fields, &["members", "member"])?;
        let members = u32::try_from(fields.required("members", 1..=MOST)?).ok().and_then(NonZeroU32::new);
        let member = fields.text("member")?.map(str::to_owned);
        // A name is a node's; nothing else may be reached by it.
        if member.as_deref().is_some_and(|name| uuid::Uuid::try_parse(name).is_err()) {
            return Err(Error::BadInput {
                field: "member".into(),
                rule: "must be a uuid, as enter has answered".into(),
            });
        }
        Ok(Self { members: members.unwrap_or(NonZeroU32::MIN), member, terms })
    }
}
