//! The verdicts of a run, as `oversell course --json` writes them and as the instances keep them; and the last full run, which
//! comes with the program.

use super::{ClaimVerdict, Words, find, lessons};
use crate::config::require;
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use utoipa::{
    ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

/// The last full run, as it was when this program was built. `make course` writes it before a release; no test asks whether the
/// program is still the one of that run.
pub static LAST_RUN: LazyLock<Verdicts> = LazyLock::new(|| Verdicts::parse(include_str!("last_run.json")));

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
    /// Parses a run in the form of [`to_file`](Self::to_file); panics if it is malformed.
    fn parse(file: &str) -> Self {
        let parse = || {
            let mut run: Value = serde_json::from_str(file)?;
            for lesson in run["lessons"].as_array_mut().into_iter().flatten() {
                lesson["seen"] = json!(match serde_json::from_value(lesson["seen"].take())? {
                    StoredWords::Same(text) => Words::untranslated(text),
                    StoredWords::Translated { zh, en } => Words::new(with_shared(&zh, &en), en),
                });
            }
            serde_json::from_value(run)
        };
        parse().unwrap_or_else(|why: serde_json::Error| panic!("the last run: {why}"))
    }

    /// The text of `last_run.json` for this run: a line for each lesson, with what a reader needs of it. What is the same in both
    /// languages, such as lines that were typed, stands once: see `without_shared`.
    pub fn to_file(&self) -> String {
        let lessons: Vec<_> = self.lessons.iter().map(LessonResult::to_line).collect();
        let (conditions, lessons) = (json!(self.conditions), lessons.join(",\n"));
        format!("{{\"conditions\":{conditions},\"lessons\":[\n{lessons}\n]}}\n")
    }

    /// The result of the lesson with this id; `None` if it was not run.
    pub fn result_of(&self, id: &str) -> Option<&LessonResult> {
        self.lessons.iter().find(|found| found.id == id)
    }
}

/// The result of a lesson, as `oversell course --json` writes it.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
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
    /// The verdict on our service alone, where it was tried.
    pub fn own_verdict(&self) -> ClaimVerdict {
        let ours = self.more.get("figures").and_then(|all| all.get("ours"));
        let ours = ours.and_then(|ours| ClaimVerdict::deserialize(ours).ok());
        ours.unwrap_or(self.verdict)
    }

    /// The line of `last_run.json`: of the figures only the verdict on our service, where it is another one.
    fn to_line(&self) -> String {
        let Words { zh, en } = self.seen.clone();
        let mut line = json!({"id": self.id, "on": self.on, "verdict": self.verdict});
        line["seen"] = json!(match zh == en {
            true => StoredWords::Same(zh),
            false => StoredWords::Translated { zh: without_shared(&zh, &en), en },
        });
        if self.own_verdict() != self.verdict {
            line["figures"] = json!({"ours": self.own_verdict()});
        }
        line.to_string()
    }
}

/// The words of a result as `last_run.json` has them.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum StoredWords {
    /// The same in both languages.
    Same(String),
    Translated {
        en: String,
        zh: Vec<ChinesePart>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ChinesePart {
    Own(String),
    /// A part of the English text: its place and its length, in bytes.
    Shared(usize, usize),
}

/// A shorter part of the text in both languages stands in both.
const LEAST_SHARED: usize = 24;

/// The parts of the Chinese text: its own words, and what it shares with the English one after a sign of Chinese punctuation.
fn without_shared(zh: &str, en: &str) -> Vec<ChinesePart> {
    let (mut parts, mut own, mut rest) = (Vec::new(), String::new(), zh);
    while let Some(first) = rest.chars().next() {
        let common =
            |from: usize| rest.chars().zip(en[from..].chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        let starts = own.ends_with(['（', '：', '；']);
        let found = en.char_indices().filter(|_| starts).map(|(from, _)| (common(from), from)).max();
        match found.filter(|(length, _): &(usize, usize)| *length >= LEAST_SHARED) {
            Some((length, from)) => {
                parts.extend([ChinesePart::Own(std::mem::take(&mut own)), ChinesePart::Shared(from, length)]);
                rest = &rest[length..];
            }
            None => {
                own.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    parts.push(ChinesePart::Own(own));
    parts
}

/// The Chinese text of these parts. Panics if the English text has no such part.
fn with_shared(parts: &[ChinesePart], en: &str) -> String {
    let text = |part: &ChinesePart| match part {
        ChinesePart::Own(own) => own.clone(),
        ChinesePart::Shared(from, length) => en[*from..from + length].to_owned(),
    };
    parts.iter().map(text).collect()
}

/// The schema of the id of a lesson.
pub(crate) fn lesson_id_schema() -> Schema {
    let one = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(lessons().map(|lesson| lesson.id)));
    one.examples(["2.3"]).into()
}

/// The schema of [`LessonResult`]'s list of what the lesson was tried on.
fn systems_schema() -> Schema {
    let name = ObjectBuilder::new().schema_type(Type::String).max_length(Some(40));
    ArrayBuilder::new()
        .items(name)
        .max_items(Some(10))
        .description(Some("What it was tried on: our service is `oversell`"))
        .examples([json!(["oversell", "redisson-3.11.2"])])
        .into()
}

/// Fails unless a lesson of `GET /course` has this id.
fn check_lesson_id(id: &str, (): &()) -> garde::Result {
    require(find(id).is_some(), format_args!("{id} is no lesson of GET /course"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lesson_of_the_last_run_is_one_of_the_course() {
        for found in &LAST_RUN.lessons {
            assert!(find(&found.id).is_some(), "{}", found.id);
        }
        assert!(LAST_RUN.conditions["commit"].is_string());
        assert!(LAST_RUN.conditions["date"].is_string());
    }

    #[test]
    fn a_run_is_read_from_its_file_as_it_was() {
        let lesson = |id: &str, zh: &str, en: &str, ours: &str| {
            json!({
                "id": id, "on": ["oversell", "redisson-3.11.2"], "verdict": "reproduced", "took_ms": 7,
                "seen": {"zh": zh, "en": en}, "figures": {"ours": ours, "sales": [1, 2]},
            })
        };
        let typed = "setnx lock 111 → 1; buy → 验库存并锁库存成功！";
        let (zh, en) = (format!("本项目已复现：{typed}；说的是 {typed}"), format!("ours reproduced: {typed}"));
        let lessons = [
            lesson("1.3", "卖出 1 件", "1 sold", "not-reproduced"),
            lesson("1.4", "1 sold", "1 sold", "reproduced"),
            lesson("2.1", &zh, &en, "reproduced"),
        ];
        let run = json!({"conditions": {"commit": "c"}, "lessons": lessons});
        let run: Verdicts = serde_json::from_value(run).expect("a run");
        let file = run.to_file();
        assert!(!file.contains("sales"), "{file}");
        assert_eq!(file.matches("1 sold").count(), 2, "{file}");
        assert_eq!(file.matches(typed).count(), 2, "once for both, and once where no sign stands before it: {file}");
        let read = Verdicts::parse(&file);
        assert_eq!(read.conditions, run.conditions);
        for (read, run) in read.lessons.iter().zip(&run.lessons) {
            assert_eq!((&read.id, &read.on), (&run.id, &run.on));
            assert_eq!((&read.seen, read.verdict), (&run.seen, run.verdict));
            assert_eq!(read.own_verdict(), run.own_verdict());
        }
        assert_eq!(read.lessons.len(), 3);
        assert_eq!(read.lessons[0].own_verdict(), ClaimVerdict::NotReproduced);
        assert_eq!(read.to_file(), file);
    }

    #[test]
    fn a_run_that_lacks_words_is_malformed() {
        let file =
            |seen: &str| format!(r#"{{"conditions":{{}},"lessons":[{{"id":"1.3","verdict":"reproduced","seen":{seen}}}]}}"#);
        assert_eq!(Verdicts::parse(&file(r#"{"en":"a b","zh":["甲",[2,1]]}"#)).lessons[0].seen.zh, "甲b");
        for seen in [r#"{"en":"a b"}"#, r#"{"en":"a b","zh":"甲"}"#, r#"{"en":"a b","zh":["甲",[2,9]]}"#, r#"{"zh":["甲"]}"#] {
            assert!(std::panic::catch_unwind(|| Verdicts::parse(&file(seen))).is_err(), "{seen}");
        }
    }

    #[test]
    fn the_stored_file_has_the_form_that_is_written() {
        assert_eq!(LAST_RUN.to_file(), include_str!("last_run.json"));
    }
}
