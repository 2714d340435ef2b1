//! `/test/deadlock`: deadlocks in MySQL, played and cured.

use crate::http::routes::prelude::*;
use crate::{
    classroom::deadlocks::{self, DeadlockLesson, DeadlockReplay},
    error::Error as Domain,
};
use askama::Template;
use axum::Json;

/// How to play it.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct DeadlockQuery {
    /// With the cure.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    cured: bool,
    /// Whether a transaction that failed is begun anew, whole, three times at most.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    retry: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeadlockBody {
    outcome: AnswerOutcome,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    #[serde(flatten)]
    replay: DeadlockReplay,
}

/// Every lesson on deadlocks, in the order of the text.
#[utoipa::path(get, path = "/test/deadlock", tag = "course",
    responses((status = 200, description = "The lessons", body = [DeadlockLesson])))]
pub(in crate::http) async fn list() -> Json<&'static [DeadlockLesson]> {
    Json(deadlocks::ALL)
}

/// Plays one: two transactions whose statements are sent in a forced order.
#[utoipa::path(post, path = "/test/deadlock/{lesson}", tag = "course",
    params(("lesson" = String, Path, description = "One of `GET /test/deadlock`", example = "opposite-order"), DeadlockQuery),
    responses(
        (status = 200, description = "It was played; the error that it shows is part of the answer",
            content((String = "text/plain", example = "两个事务以相反的顺序锁两行\n 1 A START TRANSACTION\n…"), (DeadlockBody = "application/json"))),
        (status = 404, description = "There is no such lesson"),
    ))]
pub(in crate::http) async fn play(
    State(app): State<AppState>,
    Path(lesson): Path<String>,
    Query(how): Query<DeadlockQuery>,
    format: Format,
) -> Result<Response, Error> {
    let lesson = deadlocks::find(&lesson).ok_or(Error::NoLesson(lesson))?;
    let replay = deadlocks::replay(&app.ctx, lesson, how.cured, how.retry).await?;
    let told = DeadlockText { lesson, replay: &replay };
    let text = told.render().map_err(|e| Domain::Internal(e.to_string()))?;
    let played = DeadlockBody { outcome: AnswerOutcome::Done, instance: app.ctx.instance.clone(), replay };
    Ok(format.answer(text, played))
}

/// A play as text: `templates/deadlock.txt`.
#[derive(Template)]
#[template(path = "deadlock.txt")]
struct DeadlockText<'a> {
    lesson: &'a DeadlockLesson,
    replay: &'a DeadlockReplay,
}
