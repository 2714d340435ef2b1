//! `/test/zk/barrier/*` and `/test/zk/double-barrier/*`: a gate for all, and a room that nobody begins in or leaves alone.

use super::{Lesson, lesson_response};
use crate::{
    classroom::zk_barriers,
    http::{
        app::AppState,
        error::Error,
        extract::{Query, Whole},
        format::Format,
        problem::Outcome,
        terms::{Terms, terms},
    },
    stock::Job,
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::header;
use serde::Serialize;
use std::{num::NonZeroU32, time::Duration};
use utoipa::ToSchema;
use uuid::Uuid;

const BARRIER: &str = "/curator/barrier";
const ROOM: &str = "/curator/double-barrier";

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
    /// Who asked, where a name was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
    /// The node that was made, or is gone.
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    member: String,
    /// How long the others took.
    #[schema(example = 812)]
    waited_ms: u128,
}

terms!(
    /// Who meets, and what may be asked of every lesson.
    Meeting {
        /// How many meet; every one of them says the same number.
        #[garde(dive)]
        #[param(inline, example = 3)]
        members: Whole<1, 1000>,
        /// Who leaves, as `enter` has answered; without it the last one that this instance has let in.
        // A name is a node's; nothing else may be reached by it.
        #[garde(skip)]
        member: Option<Uuid>,
    }
);

impl Meeting {
    fn members(&self) -> NonZeroU32 {
        u32::try_from(self.members.get())
            .ok()
            .and_then(NonZeroU32::new)
            .unwrap_or(NonZeroU32::MIN)
    }
}

/// Closes the barrier.
#[utoipa::path(get, path = "/test/zk/barrier/set", tag = "course", params(Terms),
    responses((status = 200, description = "It is closed",
        content((String = "text/plain", example = "栅栏已关上"), (Lesson = "application/json")))))]
pub(in crate::http) async fn set(
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        terms.job(app.ctx.config.wait(), Duration::ZERO),
        "/test/zk/barrier/set",
        BARRIER,
    );
    let text = if zk_barriers::set(&app.ctx, &job).await? {
        "栅栏已关上"
    } else {
        "栅栏本来就关着"
    };
    Ok(lesson_response(&app, &job, format, BARRIER, text, None))
}

/// Waits until the barrier is open.
#[utoipa::path(get, path = "/test/zk/barrier/wait", tag = "course", params(Terms),
    responses((status = 200, description = "It is open",
        content((String = "text/plain", example = "通过栅栏"), (Lesson = "application/json")))))]
pub(in crate::http) async fn wait(
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        terms.job(zk_barriers::WAIT, Duration::ZERO),
        "/test/zk/barrier/wait",
        BARRIER,
    );
    zk_barriers::wait(&app.ctx, &job).await?;
    Ok(lesson_response(
        &app,
        &job,
        format,
        BARRIER,
        "通过栅栏",
        None,
    ))
}

/// Opens the barrier.
#[utoipa::path(get, path = "/test/zk/barrier/remove", tag = "course", params(Terms),
    responses((status = 200, description = "It is open",
        content((String = "text/plain", example = "栅栏已移除"), (Lesson = "application/json")))))]
pub(in crate::http) async fn remove(
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        terms.job(app.ctx.config.wait(), Duration::ZERO),
        "/test/zk/barrier/remove",
        BARRIER,
    );
    let text = if zk_barriers::remove(&app.ctx, &job).await? {
        "栅栏已移除"
    } else {
        "栅栏本来就开着"
    };
    Ok(lesson_response(&app, &job, format, BARRIER, text, None))
}

/// Comes in once enough have come.
#[utoipa::path(get, path = "/test/zk/double-barrier/enter", tag = "course", params(Meeting),
    responses((status = 200, description = "All are inside",
        content((String = "text/plain", example = "都到齐了 6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b"), (Member = "application/json")))))]
pub(in crate::http) async fn enter(
    State(app): State<AppState>,
    Query(meeting): Query<Meeting>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        meeting.job(zk_barriers::WAIT, Duration::ZERO),
        "/test/zk/double-barrier/enter",
        ROOM,
    );
    let member = zk_barriers::enter(&app.ctx, &job, meeting.members()).await?;
    Ok(member_response(&app, &job, format, "都到齐了", member))
}

/// Leaves, and waits until all have left.
#[utoipa::path(get, path = "/test/zk/double-barrier/leave", tag = "course", params(Meeting),
    responses((status = 200, description = "All have left",
        content((String = "text/plain", example = "都离开了 6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b"), (Member = "application/json")))))]
pub(in crate::http) async fn leave(
    State(app): State<AppState>,
    Query(meeting): Query<Meeting>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        meeting.job(zk_barriers::WAIT, Duration::ZERO),
        "/test/zk/double-barrier/leave",
        ROOM,
    );
    let member = meeting.member.map(|member| member.to_string());
    let member = zk_barriers::leave(&app.ctx, &job, meeting.members(), member.as_deref()).await?;
    Ok(member_response(&app, &job, format, "都离开了", member))
}

fn member_response(
    app: &AppState,
    job: &Job,
    format: Format,
    text: &str,
    member: String,
) -> Response {
    match format {
        Format::Text => (
            [(header::CONTENT_TYPE, Format::TEXT)],
            format!("{text} {member}"),
        )
            .into_response(),
        Format::Json => Json(Member {
            outcome: Outcome::Done,
            strategy: ROOM,
            instance: app.ctx.instance.clone(),
            who: job.who.clone(),
            member,
            waited_ms: job.waited().as_millis(),
        })
        .into_response(),
    }
}
