//! The verdicts of the last run, in MySQL: the same on each instance.
//!
//! A run of a few lessons replaces theirs only.

use super::{Verdict, Words, find, lessons};
use crate::{ctx::Ctx, error::Error, section::session::Session, server::Server};
use chrono::{DateTime, NaiveDateTime, Utc};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::{MySql, QueryBuilder};
use std::time::Duration;
use utoipa::{
    ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

const PATIENCE: Duration = Duration::from_secs(3);

const KEEP: &str = "REPLACE INTO course_verdict (lesson, at, conditions, verdict) ";
const LAST: &str = "SELECT at, conditions, verdict FROM course_verdict ORDER BY at DESC, lesson";

/// What a run has found.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// Where and how it was run.
    #[garde(skip)]
    #[schema(value_type = Object)]
    pub(super) conditions: Map<String, Value>,
    /// A verdict for each lesson that was run.
    #[garde(length(min = 1, max = 1000), dive)]
    #[schema(min_items = 1, max_items = 1000)]
    pub(super) lessons: Vec<LessonSeen>,
}

impl Verdicts {
    /// From the file that `oversell course --json` writes.
    pub(super) fn read(file: &str) -> Self {
        serde_json::from_str(file).unwrap_or_else(|why| panic!("the last run: {why}"))
    }

    /// What a lesson came to.
    pub(super) fn of(&self, id: &str) -> Option<&LessonSeen> {
        self.lessons.iter().find(|found| found.id == id)
    }
}

/// What a lesson came to, as `oversell course --json` writes it.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
pub struct LessonSeen {
    /// One of `GET /course`.
    #[garde(custom(a_lesson))]
    #[schema(schema_with = one_of_the_lessons)]
    pub(super) id: String,
    /// What it was tried on: our service is `oversell`.
    #[garde(length(max = 10), inner(length(chars, max = 40)))]
    #[serde(default)]
    #[schema(schema_with = systems)]
    pub(super) on: Vec<String>,
    #[garde(skip)]
    pub(super) verdict: Verdict,
    #[garde(dive)]
    pub(super) seen: Words,
    /// The figures and whatever else the command writes.
    #[garde(skip)]
    #[serde(flatten)]
    #[schema(value_type = Object)]
    more: Map<String, Value>,
}

/// The number of one of them.
pub(crate) fn one_of_the_lessons() -> Schema {
    let one = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(lessons().map(|lesson| lesson.id)));
    one.examples(["2.3"]).into()
}

fn systems() -> Schema {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(40));
    ArrayBuilder::new()
        .items(name)
        .max_items(Some(10))
        .description(Some("What it was tried on: our service is `oversell`"))
        .examples([json!(["oversell", "redisson-3.11.2"])])
        .into()
}

fn a_lesson(id: &str, (): &()) -> garde::Result {
    match find(id) {
        Some(_) => Ok(()),
        None => Err(garde::Error::new(format!(
            "{id} is no lesson of GET /course"
        ))),
    }
}

/// The verdicts that are kept: of each lesson its last run, and of all of them the last one's conditions.
#[derive(Debug, Serialize, ToSchema)]
pub struct Kept {
    /// When the last run ended.
    at: DateTime<Utc>,
    /// Where and how it was run.
    #[schema(value_type = Object)]
    conditions: Map<String, Value>,
    /// A verdict for each lesson that was ever run.
    lessons: Vec<LessonSeen>,
}

/// Keeps the verdicts of a run, all or none.
///
/// # Errors
///
/// [`Error::Unavailable`] where MySQL is down, [`Error::Unknown`] where it did not answer.
pub async fn keep(ctx: &Ctx, run: &Verdicts) -> Result<(), Error> {
    let now = Utc::now().naive_utc();
    let mut rows = QueryBuilder::<MySql>::new(KEEP);
    rows.push_values(&run.lessons, |mut row, lesson| {
        row.push_bind(&lesson.id)
            .push_bind(now)
            .push_bind(json!(run.conditions).to_string())
            .push_bind(json!(lesson).to_string());
    });
    let mut conn = ctx.admin_conn(PATIENCE).await?;
    Session::of(&conn)
        .bounded(PATIENCE, rows.build().execute(&mut *conn))
        .await
        .map_err(|error| match error {
            sqlx::Error::Database(_) => error.into(),
            _ => Error::unknown(Server::MySql, error),
        })?;
    conn.done();
    Ok(())
}

/// The verdicts that are kept; `None` where there was no run yet.
///
/// # Errors
///
/// [`Error::Unavailable`] where MySQL is down.
pub async fn last(ctx: &Ctx) -> Result<Option<Kept>, Error> {
    let mut conn = ctx.admin_conn(PATIENCE).await?;
    let rows: Vec<(NaiveDateTime, String, String)> = Session::of(&conn)
        .bounded(PATIENCE, sqlx::query_as(LAST).fetch_all(&mut *conn))
        .await?;
    conn.done();
    let Some((at, conditions, _)) = rows.first() else {
        return Ok(None);
    };
    // What is there was written by `keep`; a row of an older version that says it otherwise is left out.
    let lessons = rows
        .iter()
        .flat_map(|(_, _, verdict)| serde_json::from_str(verdict));
    Ok(Some(Kept {
        at: at.and_utc(),
        conditions: serde_json::from_str(conditions).unwrap_or_default(),
        lessons: lessons.collect(),
    }))
}
