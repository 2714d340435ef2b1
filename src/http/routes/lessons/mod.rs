//! `/test/*` and `/demo*`: the lessons for several browser windows. `windows.rs` serves those that register themselves; the others
//! have a module each, because they need more than the visitor and the job. Each answers with the course's text, or with the facts in one form for all.

pub(super) mod demos;
pub(super) mod windows;
pub(super) mod zk_atomic;
pub(super) mod zk_double_barrier;
pub(super) mod zk_herd;

use crate::http::routes::prelude::*;
use crate::{
    classroom::window::{Answer, LessonDetails},
    http::job_summary::JobSummary,
    section::Job,
};

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct LessonBody {
    #[serde(flatten)]
    took: JobSummary,
    #[serde(flatten)]
    facts: LessonDetails,
}

/// Answers a lesson that went as asked: its text, or its facts with what the job took.
fn respond(app: &AppState, job: &Job, format: Format, object: &'static str, Answer { text, facts }: Answer) -> Response {
    let took = JobSummary::new(app, AnswerOutcome::Done, object, job);
    format.answer(text, LessonBody { took, facts })
}
