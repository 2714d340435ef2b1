//! The verdicts of a run, as `oversell course --json` writes them and as the instances keep them.

use super::{ClaimVerdict, Words, find, lessons};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

/// The last full run as JSON, which comes with the program.
pub const LAST_RUN: &str = include_str!("last_run.json");

/// The verdicts of a run.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// Where and how it was run.
    #[garde(skip)]
    #[schema(value_type = Object)]
    pub conditions: Map<String, Value>,
    /// A verdict for each lesson that was run.
    #[garde(length(min = 1, max = 1000), dive)]
    #[schema(min_items = 1, max_items = 1000)]
    pub lessons: Vec<LessonResult>,
}

impl Verdicts {
    /// Parses a stored run; panics if it is malformed.
    pub fn read(file: &str) -> Self {
        serde_json::from_str(file).unwrap_or_else(|why| panic!("the last run: {why}"))
    }

    /// Keeps of each lesson only id, systems, verdict and words.
    pub fn without_details(mut self) -> Self {
        self.lessons.iter_mut().for_each(|found| found.more.clear());
        self
    }

    /// The result of the lesson with this id; `None` if it was not run.
    pub fn result_of(&self, id: &str) -> Option<&LessonResult> {
        self.lessons.iter().find(|found| found.id == id)
    }
}

/// The result of a lesson, as `oversell course --json` writes it.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[schema(as = LessonSeen)]
pub struct LessonResult {
    /// One of `GET /course`.
    #[garde(custom(check_lesson_id))]
    #[schema(schema_with = lesson_id_schema)]
    pub id: String,
    /// What it was tried on: our service is `oversell`.
    #[garde(length(max = 10), inner(length(chars, max = 40)))]
    #[serde(default)]
    #[schema(schema_with = systems_schema)]
    pub on: Vec<String>,
    #[garde(skip)]
    pub verdict: ClaimVerdict,
    #[garde(dive)]
    pub seen: Words,
    /// The figures and whatever else the command writes.
    #[garde(skip)]
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub more: Map<String, Value>,
}

impl LessonResult {
    /// The digest of what the lesson rested on in this run; `None` if the run is not to be stored.
    pub fn sources(&self) -> Option<&str> {
        self.more.get("run")?["sources"].as_str()
    }
}

impl LessonResult {
    /// The verdict on our service alone; `None` if no library was tried beside it, or our service came to none.
    pub fn own_verdict(&self) -> Option<ClaimVerdict> {
        ClaimVerdict::deserialize(self.more.get("figures")?.get("ours")?).ok()
    }
}

/// The schema of the id of a lesson.
pub(crate) fn lesson_id_schema() -> Schema {
    let one = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(lessons().map(|lesson| lesson.id)));
    one.examples(["2.3"]).into()
}

/// The schema of [`LessonResult`]'s list of what the lesson was tried on.
fn systems_schema() -> Schema {
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

/// Fails unless a lesson of `GET /course` has this id.
fn check_lesson_id(id: &str, (): &()) -> garde::Result {
    match find(id) {
        Some(_) => Ok(()),
        None => Err(garde::Error::new(format!(
            "{id} is no lesson of GET /course"
        ))),
    }
}
