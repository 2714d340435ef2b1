//! The fields that every answer to a job has, besides those of its route.

use super::{app::AppState, problem::AnswerOutcome};
use crate::section::Job;
use serde::Serialize;
use utoipa::ToSchema;

/// The outcome of a job, the instance, and the times.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JobSummary {
    outcome: AnswerOutcome,
    /// The strategy, the step of the seckill, or the object of a lesson.
    #[schema(example = "version-cas")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// The name of the person who asked, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
    /// How long it took to get in; if it did not, how long it has tried.
    #[schema(example = 3)]
    waited_ms: u128,
    /// The time from its entry to this answer; 0 if it did not get in.
    #[schema(example = 1)]
    held_ms: u128,
}

impl JobSummary {
    pub(super) fn new(app: &AppState, outcome: AnswerOutcome, strategy: &'static str, job: &Job) -> Self {
        Self {
            outcome,
            strategy,
            instance: app.ctx.instance.clone(),
            who: job.request.who.clone(),
            waited_ms: job.observation.waited().as_millis(),
            held_ms: job.observation.since_entered().as_millis(),
        }
    }
}
