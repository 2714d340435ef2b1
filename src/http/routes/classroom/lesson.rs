//! `/classroom/lesson` and `/classroom/guesses`: what the desk shows, and what the class expects of it before it is played. Both are
//! told to all who watch `GET /classroom/events`, and kept only there.

use crate::http::routes::prelude::*;
use crate::{claims, http::terms::Who, visits::VisitEventKind};

/// What is on show.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OnShow)]
pub(in crate::http) struct LessonOnShow {
    /// The lesson's number.
    #[garde(custom(is_a_lesson))]
    #[schema(schema_with = claims::verdicts::one_of_the_lessons)]
    lesson: String,
}

/// What one expects.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Guess {
    /// Of which lesson's race.
    #[garde(custom(is_a_lesson))]
    #[schema(schema_with = claims::verdicts::one_of_the_lessons)]
    lesson: String,
    /// Whose guess it is: of one person the last one counts.
    #[garde(dive)]
    #[schema(inline)]
    who: Who,
    /// How many will be left, or inside at once.
    #[garde(dive)]
    #[schema(inline)]
    guess: Whole<0, 1_000_000>,
}

fn is_a_lesson(lesson: &str, (): &()) -> garde::Result {
    match claims::find(lesson) {
        Some(_) => Ok(()),
        None => Err(garde::Error::new("must be a lesson of GET /course")),
    }
}

/// Tells the class which lesson the desk shows: phones follow, and guesses begin anew.
#[utoipa::path(put, path = "/classroom/lesson", tag = "classroom", request_body = LessonOnShow,
    responses((status = 204, description = "All who watch are told")))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    Json(LessonOnShow { lesson }): Json<LessonOnShow>,
) -> StatusCode {
    app.visits.tell(VisitEventKind::Lesson, None, lesson, None);
    StatusCode::NO_CONTENT
}

/// Guesses how a lesson's race will end.
#[utoipa::path(post, path = "/classroom/guesses", tag = "classroom", request_body = Guess,
    responses((status = 204, description = "All who watch are told")))]
pub(in crate::http) async fn guess(
    State(app): State<AppState>,
    Json(Guess { lesson, who, guess }): Json<Guess>,
) -> StatusCode {
    let guess = guess.get().to_string();
    app.visits.tell(
        VisitEventKind::Guess,
        Some(who.into_inner()),
        lesson,
        Some(guess),
    );
    StatusCode::NO_CONTENT
}
