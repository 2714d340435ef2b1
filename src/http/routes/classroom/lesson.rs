//! `/classroom/lesson` and `/classroom/guesses`: the lesson on show, and the class's guesses. Watchers of `GET
//! /classroom/events` receive both; nothing else keeps them.

use crate::http::routes::prelude::*;
use crate::visits::VisitEventKind;

/// The lesson on show.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct LessonOnShow {
    #[garde(custom(check_lesson_exists))]
    #[schema(schema_with = claims::verdicts::lesson_id_schema)]
    lesson: String,
    /// Its race has ended: phones say the answer.
    #[garde(skip)]
    #[serde(default)]
    ended: bool,
}

/// A guess about a race.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Guess {
    /// Of which lesson's race.
    #[garde(custom(check_lesson_exists))]
    #[schema(schema_with = claims::verdicts::lesson_id_schema)]
    lesson: String,
    /// The person; the last guess of a person counts.
    #[garde(dive)]
    #[schema(inline)]
    who: Who,
    /// The answer that was chosen: its place from 0 in a question of the lesson's own; else how many are left, inside, or ordered.
    #[garde(dive)]
    #[schema(inline)]
    guess: BoundedInteger<0, 1_000_000>,
}

fn check_lesson_exists(lesson: &str, (): &()) -> garde::Result {
    require(claims::find(lesson).is_some(), "must be a lesson of GET /course")
}

/// Sets the lesson on show: phones follow, and guesses begin anew. With `ended`, says that its race has ended.
#[utoipa::path(put, path = "/classroom/lesson", tag = "classroom", request_body = LessonOnShow,
    security((), ("admin" = [])), responses((status = 204, description = "All who watch are told")))]
pub(in crate::http) async fn show(
    _: Admin,
    State(app): State<AppState>,
    Json(LessonOnShow { lesson, ended }): Json<LessonOnShow>,
) -> StatusCode {
    let event = if ended { VisitEventKind::Ended } else { VisitEventKind::Lesson };
    app.visits.report_lesson(event, None, lesson, None);
    StatusCode::NO_CONTENT
}

/// Guesses how a lesson's race will end.
#[utoipa::path(post, path = "/classroom/guesses", tag = "classroom", request_body = Guess,
    responses((status = 204, description = "All who watch are told")))]
pub(in crate::http) async fn guess(State(app): State<AppState>, Json(Guess { lesson, who, guess }): Json<Guess>) -> StatusCode {
    let guess = guess.get().to_string();
    app.visits.report_lesson(VisitEventKind::Guess, Some(who.into_inner()), lesson, Some(guess));
    StatusCode::NO_CONTENT
}
