//! Each lesson's last verdict, in MySQL: the same on each instance. A run of a few lessons replaces theirs only.

use crate::{
    claims::verdicts::{LessonResult, Verdicts},
    ctx::Ctx,
    error::Error,
    section::session::Session,
    server::Server,
};
use chrono::{DateTime, NaiveDateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sqlx::{MySql, QueryBuilder};
use std::time::Duration;
use utoipa::ToSchema;

/// Time limit of each statement: a person waits for the answer.
const MYSQL_TIMEOUT: Duration = Duration::from_secs(3);

/// Writes a row for each lesson of the run; the rows of other lessons stay.
const REPLACE_VERDICTS: &str = "REPLACE INTO course_verdict (lesson, at, conditions, verdict) ";
/// All kept verdicts, those of the last run first.
const SELECT_VERDICTS: &str = "SELECT at, conditions, verdict FROM course_verdict ORDER BY at DESC, lesson";

/// The verdicts that are kept: of each lesson its last run, and of all of them the last one's conditions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LastVerdicts {
    /// When the last run ended.
    at: DateTime<Utc>,
    /// Where and how it was run.
    #[schema(value_type = Object)]
    conditions: Map<String, Value>,
    /// A verdict for each lesson that was ever run.
    lessons: Vec<LessonResult>,
}

/// Keeps the verdicts of a run, all or none; each replaces that of an earlier run of its lesson.
/// Errors: [`Error::Unavailable`] where MySQL is down, [`Error::Unknown`] where it did not answer.
pub(super) async fn store(ctx: &Ctx, run: &Verdicts) -> Result<(), Error> {
    let now = Utc::now().naive_utc();
    let mut rows = QueryBuilder::<MySql>::new(REPLACE_VERDICTS);
    rows.push_values(&run.lessons, |mut row, lesson| {
        row.push_bind(&lesson.id)
            .push_bind(now)
            .push_bind(json!(run.conditions).to_string())
            .push_bind(json!(lesson).to_string());
    });
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    Session::of(&conn).bounded(MYSQL_TIMEOUT, rows.build().execute(&mut *conn)).await.map_err(|error| match error {
        sqlx::Error::Database(_) => error.into(),
        _ => Error::unknown_outcome(Server::MySql, error),
    })?;
    conn.done();
    Ok(())
}

/// The kept verdicts; `None` if there was no run yet. A row that an older version wrote in another form is left out.
/// Errors: [`Error::Unavailable`] where MySQL is down.
pub(super) async fn load_last(ctx: &Ctx) -> Result<Option<LastVerdicts>, Error> {
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    let rows: Vec<(NaiveDateTime, String, String)> =
        Session::of(&conn).bounded(MYSQL_TIMEOUT, sqlx::query_as(SELECT_VERDICTS).fetch_all(&mut *conn)).await?;
    conn.done();
    let Some((at, conditions, _)) = rows.first() else {
        return Ok(None);
    };
    let lessons = rows.iter().flat_map(|(_, _, verdict)| serde_json::from_str(verdict));
    Ok(Some(LastVerdicts {
        at: at.and_utc(),
        conditions: serde_json::from_str(conditions).unwrap_or_default(),
        lessons: lessons.collect(),
    }))
}
