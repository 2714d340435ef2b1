//! The course as data, in both languages: every claim of the documents, where it stands, what a student types, and which kind of
//! experiment tries it. The experiments themselves are in `trials`.
//!
//! A chapter is a file in `lessons/`; [`ALL`] has them in the documents' order. [`runner`] runs the lines of a lesson, for the
//! experiments and for the tests.
//!
//! Next: `lessons/chapter_1.toml`, `lesson.rs`, `run.rs`.

mod lesson;
mod line;
pub mod placeholders;
mod run;
pub mod runner;
mod script;
mod toml;
mod verdict;
pub mod verdicts;
mod words;

pub use lesson::{ALL, Chapter, Lesson};
pub use line::{TypedLine, with_waits};
pub use run::{RateSide, Rates, RatioClaim, Run, Target, Twin};
pub use script::{Library, Script, ScriptLine, TwinChange};
pub use verdict::ClaimVerdict;
pub use words::Words;
pub use words::words;

/// Every lesson of every chapter, in the order of the documents.
pub fn lessons() -> impl Iterator<Item = &'static Lesson> {
    ALL.iter().flat_map(|chapter| &chapter.lessons)
}

/// The lesson with this id, if there is one.
pub fn find(id: &str) -> Option<&'static Lesson> {
    lessons().find(|lesson| lesson.id == id)
}

#[cfg(test)]
mod tests {
    use super::{placeholders::Placeholders, *};
    use std::collections::HashSet;

    #[test]
    fn each_lesson_has_an_id_of_its_own() {
        let mut seen = HashSet::new();
        let twice: Vec<_> = lessons().map(|lesson| lesson.id).filter(|id| !seen.insert(*id)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn a_list_of_experiments_has_several_and_no_list_in_it() {
        let is_list = |run: &Run| matches!(run, Run::All(_) | Run::NotRun(_));
        for lesson in lessons() {
            if let Run::All(runs) = &lesson.run {
                assert!(runs.len() > 1 && !runs.iter().any(is_list), "{}", lesson.id);
            }
        }
    }

    #[test]
    fn every_place_of_every_line_is_known() {
        let urls = |from: u16| (from..from + 5).map(|port| format!("http://127.0.0.1:{port}")).collect::<Vec<_>>();
        let (instances, redis) = (urls(8000), urls(16379));
        let placeholders =
            Placeholders::new("http://127.0.0.1:8080", &instances, "mysql://root@127.0.0.1/test", &redis, "127.0.0.1:1");
        let left = |text: &str| {
            let placeholders = [
                "{80",
                "{81",
                "{82",
                "{name",
                "{mysql",
                "{redis",
                "{zookeeper",
                "{zk",
                "{fault",
                "{:id",
                "{?id",
                "{&id",
                "{-id",
                "{id",
                "{user",
            ];
            placeholders.iter().any(|place| text.contains(place))
        };
        for lesson in lessons() {
            // A path for the browser has one place only.
            for path in &lesson.r#try {
                assert!(!path.replace("{who}", "").contains('{'), "{path}");
            }
            for typed in lesson.by_hand.iter().map(|line| placeholders.fill_line(line)) {
                assert!(!left(&typed.run) && !left(&typed.expect), "{}: {}", lesson.id, typed.run);
            }
        }
        assert!(
            left(&placeholders.fill_line(&TypedLine::new("redis-cli {redis-9} ping", "PONG")).run),
            "one that is not there is seen"
        );
    }
}
