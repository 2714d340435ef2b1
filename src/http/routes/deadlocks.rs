//! `/test/deadlock`: deadlocks in MySQL, played and cured.

use crate::{
    classroom::deadlocks::{self, DeadlockLesson, DeadlockReplay},
    http::{
        app::AppState,
        error::Error,
        extract::{Path, Query},
        format::Format,
        problem::Outcome,
    },
};
use axum::{Json, extract::State, response::Response};
use garde::Validate;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use utoipa::{IntoParams, ToSchema};

/// How to play it.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct How {
    /// With the cure.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    cured: bool,
    /// Whether a transaction that the server ended is begun anew, whole, four times at most.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    retry: bool,
}

/// What a play came to.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeadlockPlayed {
    outcome: Outcome,
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
    params(("lesson" = String, Path, description = "One of `GET /test/deadlock`", example = "opposite-order"), How),
    responses(
        (status = 200, description = "It was played; the error that it shows is part of the answer",
            content((String = "text/plain", example = "两个事务以相反的顺序锁两行\n 1 A START TRANSACTION\n…"), (DeadlockPlayed = "application/json"))),
        (status = 404, description = "There is no such lesson"),
    ))]
pub(in crate::http) async fn play(
    State(app): State<AppState>,
    Path(lesson): Path<String>,
    Query(how): Query<How>,
    format: Format,
) -> Result<Response, Error> {
    let lesson = deadlocks::find(&lesson).ok_or(Error::NoLesson(lesson))?;
    let replay = deadlocks::replay(&app.ctx, lesson, how.cured, how.retry).await?;
    let text = text(lesson, &replay);
    let played = DeadlockPlayed {
        outcome: Outcome::Done,
        instance: app.ctx.instance.clone(),
        replay,
    };
    Ok(format.answer(text, played))
}

fn text(lesson: &DeadlockLesson, replay: &DeadlockReplay) -> String {
    let mut text = format!("{}\n", lesson.title.zh);
    for (n, step) in replay.steps.iter().enumerate() {
        write!(text, "{:2} {:?} {}", n + 1, step.side, step.sql).ok();
        if step.attempt > 1 {
            write!(text, "  [第 {} 次]", step.attempt).ok();
        }
        if let Some(until) = step.waited_until {
            write!(text, "  等到第 {until} 步以后").ok();
        }
        if let (Some(error), Some(message)) = (step.error, &step.message) {
            write!(text, "  错误 {error}：{message}").ok();
        }
        if let Some(locks) = step.row_locks.filter(|locks| *locks > 0) {
            write!(text, "  锁住 {locks} 行").ok();
        }
        text.push('\n');
    }
    for plan in &replay.plans {
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "NULL".into());
        let (kind, key, rows, extra) = (
            word(&plan.r#type),
            word(&plan.key),
            word(&plan.rows),
            word(&plan.extra),
        );
        writeln!(
            text,
            "EXPLAIN ({}): type {kind}, key {key}, rows {rows}, {extra}",
            plan.when
        )
        .ok();
    }
    match (replay.victim, replay.error) {
        (Some(victim), Some(error)) => writeln!(
            text,
            "牺牲者 {victim:?}，错误 {error}：{}",
            lesson.breaks.zh
        )
        .ok(),
        _ => writeln!(text, "没有错误").ok(),
    };
    writeln!(
        text,
        "提交了 {:?}，整个事务重试 {} 次\n解法：{}",
        replay.committed, replay.retries, lesson.cure.zh
    )
    .ok();
    if let Some(latest) = &replay.latest_deadlock {
        writeln!(text, "LATEST DETECTED DEADLOCK\n{latest}").ok();
    }
    text
}
