//! The experiments that try every claim of `claims` on a running cluster. They are part of the program, not of the library.
//!
//! 1. An experiment gets a [`Cluster`], and does only what anybody outside can: requests, loads, replays, the lab's faults, the
//!    servers' clients.
//! 2. It returns an [`Observation`]: a verdict, words in both languages, and figures that the report draws.
//!
//! Next: `kinds/mod.rs`, `experiments/mod.rs`, `observation.rs`; `command.rs` runs them.

mod buyers;
mod cluster;
pub(crate) mod command;
#[cfg(test)]
mod docs;
mod experiments;
pub(crate) mod fault_matrix;
mod java_libraries;
mod kinds;
mod observation;
mod own_lab;
mod product;
mod purchases;
mod reference;
mod replay;
mod report;
mod results;
mod table;
mod tools;
mod twin;
mod typed;
mod voucher;

pub(crate) use cluster::Cluster;
pub(crate) use observation::{MeasuredRate, NoVerdict, Observation, PlayedRace, Ratio, Sale};
pub(crate) use product::Product;

/// The lessons agree with the registries of other rooms.
#[cfg(test)]
mod tests {
    use super::experiments;
    use oversell::{
        claims::{Lesson, Run, find, lessons},
        classroom::deadlocks,
        replay, seckill, stock,
    };
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn each_replayed_lesson_has_exactly_one_race() {
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

    /// Why the race that a lesson's button plays is not the lesson's own claim; `None` if it is.
    fn contradiction(lesson: &Lesson, race: &replay::Race) -> Option<&'static str> {
        let [flaw, cure] = [race.flaw.act.name(), race.cured.act.name()];
        let parts = lesson.run.parts();
        let judged = parts.iter().any(|run| matches!(run, Run::Replay));
        if !judged && race.lessons.len() > 1 {
            return Some("another lesson's race, by which its own claim is not judged");
        }
        let named: Vec<_> = lesson.strategies.iter().chain(&lesson.steps).collect();
        let is_known = |act: &str| stock::find(act).is_some() || seckill::find(act).is_some();
        let plays = |act: &str| named.iter().any(|name| **name == act) || !is_known(act);
        if !named.is_empty() && !plays(flaw) && !plays(cure) {
            return Some("neither half plays a strategy or step of the lesson");
        }
        parts.iter().find_map(|run| match run {
            Run::Exact { strategy, .. } if *strategy == flaw => Some("its flaw is the strategy that the claim calls exact"),
            Run::Oversells { strategy, .. } if *strategy != flaw => {
                Some("its flaw is not the strategy that the claim calls wrong")
            }
            _ => None,
        })
    }

    #[test]
    fn the_race_of_each_lesson_shows_its_own_claim() {
        let wrong: Vec<_> = replay::lessons().filter_map(|(id, race)| Some((id, contradiction(find(id)?, race)?))).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// The twin: these lessons were once given the races of others.
    #[test]
    fn the_race_of_another_lesson_is_refused() {
        for (lesson, other) in
            [("1.3", "1.1"), ("1.5", "1.6"), ("3.3", "3.2"), ("3.7.1", "3.5"), ("4.2", "4.3.2"), ("002.watchdog", "2.7")]
        {
            let (_, race) = replay::find(other).expect("a race");
            let shared = replay::Race { lessons: &["x", "y"], ..*race };
            let lesson = find(lesson).expect("a lesson");
            assert!(contradiction(lesson, &shared).is_some(), "{}", lesson.id);
        }
    }

    #[test]
    fn each_custom_experiment_belongs_to_one_lesson() {
        let is_custom = |run: &Run| matches!(run, Run::Custom);
        let asked = lessons().filter(|lesson| lesson.run.parts().iter().any(is_custom));
        let mut asked: Vec<_> = asked.map(|lesson| lesson.id).collect();
        let mut known: Vec<_> = experiments::ALL.iter().map(|known| known.lesson).collect();
        asked.sort_unstable();
        known.sort_unstable();
        assert_eq!(asked, known);
    }

    /// A lesson names no strategy, step or deadlock that there is not, and each stands in a lesson.
    #[test]
    fn the_lessons_name_what_is_in_the_registries() {
        let slugs = |of: fn(&Lesson) -> &[&'static str]| lessons().flat_map(of).copied();
        for (named, registered) in [
            (slugs(|lesson| &lesson.strategies).collect::<BTreeSet<_>>(), stock::ALL.iter().map(|entry| entry.slug).collect()),
            (slugs(|lesson| &lesson.steps).collect(), seckill::ALL.iter().map(|entry| entry.slug).collect()),
            (slugs(|lesson| &lesson.deadlocks).collect(), deadlocks::ALL.iter().map(|entry| entry.slug).collect()),
        ] {
            assert_eq!(named, registered);
        }
    }
}
