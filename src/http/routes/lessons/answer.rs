//! What a lesson answers: the course's text, or the facts in one form for all.

use crate::{
    classroom::window::{Answer, Facts},
    http::{app::AppState, format::Format, problem::Outcome},
    section::Job,
};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

/// What a lesson answers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Lesson {
    outcome: Outcome,
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
    #[serde(flatten)]
    facts: Facts,
}

/// The answer in the form that the client reads.
pub(super) fn response(
    app: &AppState,
    job: &Job,
    format: Format,
    object: &'static str,
    Answer { text, facts }: Answer,
) -> Response {
    let lesson = Lesson {
        outcome: Outcome::Done,
        strategy: object,
        instance: app.ctx.instance.clone(),
        who: job.request.who.clone(),
        waited_ms: job.seen.waited().as_millis(),
        held_ms: job.seen.held().as_millis(),
        facts,
    };
    format.answer(text, lesson)
}
