//! The answer of a lesson: the course's text, or the facts in one form for all.

use crate::http::routes::prelude::*;
use crate::{
    classroom::window::{Answer, Facts},
    http::took::Took,
    section::Job,
};

/// What a lesson answers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Lesson {
    #[serde(flatten)]
    took: Took,
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
    let took = Took::of(app, Outcome::Done, object, job);
    format.answer(text, Lesson { took, facts })
}
