//! The course, re-run: every claim of the documents, tried on a running cluster, with a verdict each.
//!
//! 1. A lesson is data, [`Lesson`]: the claim in our own words, where it stands, what a student types, and the kind of its
//!    experiment. A chapter is a file in `lessons/`; [`ALL`] has them in the documents' order.
//! 2. An experiment is handed a [`Cluster`], which can do what anybody outside can: requests, loads, replays, the lab's
//!    faults, and the servers' own clients.
//! 3. What it has [`Seen`] is a verdict, words in both languages, and figures in the forms that the report draws.
//!
//! Next: `lessons/chapter_1.toml`, `lesson.rs`, `experiments/mod.rs`, `seen.rs`; `command.rs` runs them.

mod cluster;
pub mod command;
#[cfg(test)]
mod docs;
mod experiments;
pub mod fault_matrix;
mod found;
pub mod kept;
mod last_run;
mod lesson;
pub mod places;
mod product;
mod replay;
mod report;
mod script;
mod seen;
mod stand;
mod table;
mod twin;
mod voucher;

pub use cluster::Cluster;
pub use lesson::{
    ALL, Again, Burst, Chapter, Lesson, Line, Rates, Run, Says, Side, Target, Twin, Verdict,
};
pub use product::{Left, Product};
pub use script::{Instead, Library, Script, Told};
pub(crate) use seen::words;
pub use seen::{Figures, NoVerdict, Play, Rated, Ratio, Sale, Seen, Words};

/// Every lesson.
pub fn lessons() -> impl Iterator<Item = &'static Lesson> {
    ALL.iter().flat_map(|chapter| &chapter.lessons)
}

/// The lesson of this section.
#[must_use]
pub fn find(id: &str) -> Option<&'static Lesson> {
    lessons().find(|lesson| lesson.id == id)
}

#[cfg(test)]
mod tests {
    use super::{places::Places, *};
    use crate::{classroom::deadlocks, replay, seckill, stock};
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn each_lesson_has_an_id_of_its_own() {
        let mut seen = HashSet::new();
        let twice: Vec<_> = lessons()
            .map(|lesson| lesson.id)
            .filter(|id| !seen.insert(*id))
            .collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn a_lesson_has_one_race_at_most_and_each_that_plays_one_has_it() {
        let shown: Vec<_> = replay::lessons().map(|(lesson, _)| lesson).collect();
        let unique: HashSet<_> = shown.iter().copied().collect();
        assert_eq!(unique.len(), shown.len(), "{shown:?}");
        let unknown: Vec<_> = shown.iter().filter(|id| find(id).is_none()).collect();
        assert!(unknown.is_empty(), "no lessons: {unknown:?}");
        let is_replay = |run: &Run| matches!(run, Run::Replay);
        let without: Vec<_> = lessons()
            .filter(|lesson| lesson.run.parts().iter().any(is_replay))
            .filter(|lesson| !unique.contains(lesson.id))
            .map(|lesson| lesson.id)
            .collect();
        assert!(without.is_empty(), "no race: {without:?}");
    }

    #[test]
    fn each_custom_experiment_belongs_to_one_lesson_that_asks_for_it() {
        let is_custom = |run: &Run| matches!(run, Run::Custom);
        let asked = lessons().filter(|lesson| lesson.run.parts().iter().any(is_custom));
        let asked: Vec<_> = asked.map(|lesson| lesson.id).collect();
        let known: Vec<_> = experiments::CUSTOM.iter().map(|(id, _)| *id).collect();
        assert_eq!(asked, known);
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
        let urls = |from: u16| {
            (from..from + 5)
                .map(|port| format!("http://127.0.0.1:{port}"))
                .collect::<Vec<_>>()
        };
        let (instances, redis) = (urls(8000), urls(16379));
        let places = Places::new(
            "http://127.0.0.1:8080",
            &instances,
            "mysql://root@127.0.0.1/test",
            &redis,
            "127.0.0.1:1",
        );
        let left = |text: &str| {
            let places = [
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
            ];
            places.iter().any(|place| text.contains(place))
        };
        for lesson in lessons() {
            // What the page opens knows one place only.
            for path in &lesson.r#try {
                assert!(!path.replace("{who}", "").contains('{'), "{path}");
            }
            for typed in lesson.by_hand.iter().map(|line| places.typed(line)) {
                assert!(
                    !left(&typed.run) && !left(&typed.expect),
                    "{}: {}",
                    lesson.id,
                    typed.run
                );
            }
        }
        assert!(
            left(
                &places
                    .typed(&Line::new("redis-cli {redis-9} ping", "PONG"))
                    .run
            ),
            "one that is not there is seen"
        );
    }

    /// A lesson names no strategy, step or deadlock that there is not, and each stands in a lesson.
    #[test]
    fn the_lessons_name_what_is_in_the_registries() {
        let slugs = |of: fn(&Lesson) -> &[&'static str]| lessons().flat_map(of).copied();
        for (named, registered) in [
            (
                slugs(|lesson| &lesson.strategies).collect::<BTreeSet<_>>(),
                stock::ALL.iter().map(|entry| entry.slug).collect(),
            ),
            (
                slugs(|lesson| &lesson.steps).collect(),
                seckill::ALL.iter().map(|entry| entry.slug).collect(),
            ),
            (
                slugs(|lesson| &lesson.deadlocks).collect(),
                deadlocks::ALL.iter().map(|entry| entry.slug).collect(),
            ),
        ] {
            assert_eq!(named, registered);
        }
    }
}
