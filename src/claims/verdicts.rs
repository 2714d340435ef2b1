//! The verdicts of a run, as `oversell course --json` writes them and as the instances keep them.

use super::{ClaimVerdict, Words, find, lessons};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

/// What a run has found.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// Where and how it was run.
    #[garde(skip)]
    #[schema(value_type = Object)]
    pub(crate) conditions: Map<String, Value>,
    /// A verdict for each lesson that was run.
    #[garde(length(min = 1, max = 1000), dive)]
    #[schema(min_items = 1, max_items = 1000)]
    pub lessons: Vec<LessonResult>,
}

impl Verdicts {
    pub fn read(file: &str) -> Self {
        serde_json::from_str(file).unwrap_or_else(|why| panic!("the last run: {why}"))
    }

    /// Without figures, claims and headings.
    pub fn brief(mut self) -> Self {
        self.lessons.iter_mut().for_each(|found| found.more.clear());
        self
    }

    pub fn of(&self, id: &str) -> Option<&LessonResult> {
        self.lessons.iter().find(|found| found.id == id)
    }
}

/// What a lesson came to, as `oversell course --json` writes it.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[schema(as = LessonSeen)]
pub struct LessonResult {
    /// One of `GET /course`.
    #[garde(custom(a_lesson))]
    #[schema(schema_with = one_of_the_lessons)]
    pub id: String,
    /// What it was tried on: our service is `oversell`.
    #[garde(length(max = 10), inner(length(chars, max = 40)))]
    #[serde(default)]
    #[schema(schema_with = systems)]
    pub on: Vec<String>,
    #[garde(skip)]
    pub verdict: ClaimVerdict,
    #[garde(dive)]
    pub seen: Words,
    /// The figures and whatever else the command writes.
    #[garde(skip)]
    #[serde(flatten)]
    #[schema(value_type = Object)]
    more: Map<String, Value>,
}

impl LessonResult {
    /// The verdict of our service alone, where a library was tried beside it.
    pub fn of_ours(&self) -> Option<ClaimVerdict> {
        ClaimVerdict::deserialize(self.more.get("figures")?.get("ours")?).ok()
    }
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
