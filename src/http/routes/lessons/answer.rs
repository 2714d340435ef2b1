//! The answer of a lesson: the course's text, or the facts in one form for all.

use crate::http::routes::prelude::*;
use crate::{
    classroom::window::{Answer, LessonDetails},
    http::job_summary::JobSummary,
    section::Job,
};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lesson)]
pub(in crate::http) struct LessonBody {
    #[serde(flatten)]
    took: JobSummary,
    #[serde(flatten)]
    facts: LessonDetails,
}

/// The answer in the form that the client reads.
pub(super) fn response(
    app: &AppState,
    job: &Job,
    format: Format,
    object: &'static str,
    Answer { text, facts }: Answer,
) -> Response {
    let took = JobSummary::of(app, AnswerOutcome::Done, object, job);
    format.answer(text, LessonBody { took, facts })
}
