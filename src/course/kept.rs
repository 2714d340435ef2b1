//! The verdicts of the last run, in MySQL: the same on each instance.
//!
//! A run of a few lessons replaces theirs only.

use crate::{ctx::Ctx, error::Error, server::Server};
use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Map, Value};
use sqlx::{MySql, QueryBuilder};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(3);

const KEEP: &str = "REPLACE INTO course_verdict (lesson, at, conditions, verdict) ";
const LAST: &str = "SELECT at, conditions, verdict FROM course_verdict ORDER BY at DESC, lesson";

/// What the last runs have said.
#[derive(Debug)]
pub struct Kept {
    /// When the last one ended.
    pub at: DateTime<Utc>,
    /// Where and how that was run.
    pub conditions: Value,
    /// Each lesson as it was last run.
    pub lessons: Vec<Value>,
}

/// Keeps the verdicts of a run, all or none: each a lesson's id and what the command says of it.
///
/// # Errors
///
/// [`Error::Unavailable`] where MySQL is down, [`Error::Unknown`] where it did not answer.
pub async fn keep(
    ctx: &Ctx,
    conditions: &Map<String, Value>,
    lessons: &[(&str, String)],
) -> Result<(), Error> {
    let (now, conditions) = (
        Utc::now().naive_utc(),
        Value::from(conditions.clone()).to_string(),
    );
    let mut rows = QueryBuilder::<MySql>::new(KEEP);
    rows.push_values(lessons, |mut row, (id, verdict)| {
        row.push_bind(*id)
            .push_bind(now)
            .push_bind(&conditions)
            .push_bind(verdict);
    });
    let mut conn = ctx.desk.conn(PATIENCE).await?;
    conn.session()
        .bounded(PATIENCE, rows.build().execute(&mut *conn))
        .await
        .map_err(|error| match error {
            sqlx::Error::Database(_) => error.into(),
            _ => Error::Unknown {
                server: Server::MySql.name(),
                reason: error.to_string(),
            },
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
    let mut conn = ctx.desk.conn(PATIENCE).await?;
    let rows: Vec<(NaiveDateTime, String, String)> =
        sqlx::query_as(LAST).fetch_all(&mut *conn).await?;
    conn.done();
    let Some((at, conditions, _)) = rows.first() else {
        return Ok(None);
    };
    // What is there was written by `keep`.
    let read = |text: &str| serde_json::from_str(text).unwrap_or_default();
    let lessons = rows.iter().map(|(_, _, verdict)| read(verdict)).collect();
    Ok(Some(Kept {
        at: at.and_utc(),
        conditions: read(conditions),
        lessons,
    }))
}
