//! The stored run, `last_run.json`: what the last full run has found. docs/course.md shows it, and a run reports each verdict that
//! differs.
//!
//! 1. `make course` tries every lesson on a quiet machine and updates the file, `make changed` tries those that are outdated.
//! 2. Each verdict carries its date, its commit, and the digest of what its lesson rested on (`sources.rs`). A lesson is outdated
//!    if the digest is another one now, or if it has no verdict.
//! 3. A claim of rates is judged by the medians of its last five stored runs, as in one run by the rounds: all are within the
//!    claim's bounds, or all outside, or the verdict is noise. The first run of a rate is judged by its rounds.
//! 4. `make check` refuses outdated lessons. Only a run in full on a lab of its own writes a digest.

use super::{
    observation::{MeasuredRates, MeasuredRatio, OURS},
    sources::Sources,
};
use oversell::claims::{
    ClaimVerdict, Lesson, Words, find, lessons,
    verdicts::{self, LessonResult, Verdicts},
    words,
};
use oversell_lab::{spread::Spread, terminal::chinese::localized};
use serde_json::json;
use std::{mem, sync::LazyLock};

/// How many runs of a rate are stored at most.
const MAX_STORED_RUNS: usize = 5;

/// The path in the repository where `make course` stores the run.
pub(super) const FILE: &str = "src/claims/last_run.json";

/// The stored run, as it was when this program was built.
pub(super) static LAST_RUN: LazyLock<Verdicts> =
    LazyLock::new(|| Verdicts::read(verdicts::LAST_RUN));

/// The expected verdict of a lesson tried on these systems: that of the last full run, or `Reproduced` if it has none. Without
/// the libraries of that run it is what our service came to there; `None` on other systems.
pub(super) fn verdict(id: &str, on: &[String]) -> Option<ClaimVerdict> {
    match LAST_RUN.result_of(id) {
        None => Some(ClaimVerdict::Reproduced),
        Some(found) if found.verdict == ClaimVerdict::Unavailable => Some(ClaimVerdict::Reproduced),
        Some(found) if found.on == on => Some(found.verdict),
        Some(found) if on.len() == 1 && found.on.starts_with(on) => found.own_verdict(),
        Some(_) => None,
    }
}

/// Whether the stored verdict of a lesson is missing, or of a program with other sources.
pub(super) fn is_outdated(run: &Verdicts, lesson: &Lesson, sources: &Sources) -> bool {
    let stored = run.result_of(lesson.id).and_then(LessonResult::sources);
    stored != Some(&sources.digest(lesson)[..])
}

/// Names the outdated lessons, and what to do; `None` if there are none.
pub(super) fn outdated(run: &Verdicts, sources: &Sources) -> Option<String> {
    let outdated = lessons().filter(|lesson| is_outdated(run, lesson, sources));
    let outdated: Vec<_> = outdated.map(|lesson| lesson.id).collect();
    let (count, all, ids) = (outdated.len(), lessons().count(), outdated.join(" "));
    let words = || {
        localized!(
            "存放的运行结果里，{count} 课（共 {all} 课）的结论不是这个程序的：{ids}。它们的实验、策略或锁在那以后改过，或者从没运行过。用 `make changed` 运行这几课，再 `make docs`",
            "the stored run has no verdict of this program for {count} of {all} lessons: {ids}. Their experiment, strategies or locks have changed since, or they were never run. `make changed` runs them; then `make docs`"
        )
    };
    (count > 0).then(words)
}

/// Takes verdicts that have a digest over into a stored run, but for those tried on less than before; drops lessons that are no
/// more. The conditions stay those of the last run of every lesson.
pub(super) fn update(stored: &mut Verdicts, found: Verdicts) {
    if lessons().all(|lesson| found.result_of(lesson.id).is_some()) {
        stored.conditions = found.conditions;
    }
    for mut new in found.lessons {
        let old = stored.result_of(&new.id);
        let is_less = old.is_some_and(|old| lacks_a_system(&new, old));
        if new.sources().is_some() && !is_less {
            judge_by_the_last_runs(&mut new, old);
            stored.lessons.retain(|old| old.id != new.id);
            stored.lessons.push(new);
        }
    }
    let place = |found: &LessonResult| lessons().position(|lesson| lesson.id == found.id);
    stored.lessons.retain(|found| place(found).is_some());
    stored.lessons.sort_by_key(place);
}

/// Puts the medians of the runs before in front of the new one's. From the second run on they decide the verdict, as the words
/// say.
fn judge_by_the_last_runs(new: &mut LessonResult, old: Option<&LessonResult>) {
    let Some(mut measured) = rates(new) else {
        return;
    };
    let before = old.and_then(rates).map_or_else(Vec::new, |old| old.ratios);
    for (n, ratio) in measured.ratios.iter_mut().enumerate() {
        if let Some(before) = before.get(n).filter(|before| before.is_same_claim(ratio)) {
            let mut medians = [&before.medians[..], &ratio.medians].concat();
            medians.drain(..medians.len().saturating_sub(MAX_STORED_RUNS));
            ratio.medians = medians;
        }
    }
    let spreads: Vec<_> = measured.ratios.iter().map(MeasuredRatio::spread).collect();
    if spreads.iter().all(|runs| runs.rounds > 1) {
        new.verdict = measured.verdict();
        for Spread {
            median,
            min,
            max,
            rounds,
        } in spreads
        {
            let runs = words!(
                "最近 {rounds} 次存放的运行里是 {median:.2} 倍（{min:.2} 到 {max:.2}）。",
                "In the last {rounds} stored runs a ratio of {median:.2} ({min:.2} to {max:.2})."
            );
            new.seen = Words::join(&[mem::take(&mut new.seen), runs], ["", " "]);
        }
    }
    new.more.insert("rates".to_owned(), json!(measured));
}

/// The rates of a result; `None` if it has none that can be read.
fn rates(result: &LessonResult) -> Option<MeasuredRates> {
    serde_json::from_value(result.more.get("rates")?.clone()).ok()
}

/// Whether a system of before is missing that the lesson still is about.
fn lacks_a_system(new: &LessonResult, old: &LessonResult) -> bool {
    let Some(lesson) = find(&new.id) else {
        return false;
    };
    let ours = lesson.why_not().is_none().then(|| OURS.to_owned());
    let theirs = lesson.theirs.iter().flat_map(|script| script.on.versions());
    let its: Vec<_> = ours
        .into_iter()
        .chain(theirs.map(|java| java.to_string()))
        .collect();
    let is_missing = |system: &String| its.contains(system) && !new.on.contains(system);
    old.on.iter().any(is_missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::sources::{SOURCES, tests::changed};
    use serde_json::Value;

    #[test]
    fn each_of_its_lessons_is_one_of_the_course() {
        for found in &LAST_RUN.lessons {
            assert!(find(&found.id).is_some(), "{}", found.id);
        }
    }

    #[test]
    #[ignore = "`make check` runs it: a change may stand for a while before its lessons are run again"]
    fn the_stored_run_is_of_this_program() {
        let outdated = outdated(&LAST_RUN, &SOURCES);
        assert!(outdated.is_none(), "{}", outdated.unwrap_or_default());
    }

    fn result(id: &str, verdict: &str, on: &[&str], sources: Option<String>) -> Value {
        let run = sources.map(|sources| json!({"commit": "c", "date": "d", "sources": sources}));
        json!({"id": id, "verdict": verdict, "on": on, "seen": {"zh": "", "en": ""}, "run": run})
    }

    fn run(commit: &str, lessons: impl IntoIterator<Item = Value>) -> Verdicts {
        let lessons: Vec<_> = lessons.into_iter().collect();
        Verdicts::read(&json!({"conditions": {"commit": commit}, "lessons": lessons}).to_string())
    }

    /// Every lesson, as this program finds it.
    fn whole() -> impl Iterator<Item = Value> {
        lessons().map(|lesson| {
            let digest = SOURCES.digest(lesson);
            result(lesson.id, "reproduced", &["oversell"], Some(digest))
        })
    }

    #[test]
    fn a_lesson_of_other_sources_is_named() {
        assert_eq!(outdated(&run("a", whole()), &SOURCES), None);
        let other = changed("src/stock/strategies/redis_lock.rs", |text| {
            text.replace("watchdog", "lease")
        });
        let named = outdated(&run("a", whole()), &other).expect("a strategy has changed");
        assert!(named.contains(" 2.10.1.rate"), "{named}");
        assert!(!named.contains(" 1.4 "), "{named}");
    }

    #[test]
    fn a_lesson_without_a_run_or_a_digest_is_named() {
        let without = whole().filter(|result| result["id"] != "2.3");
        let named = outdated(&run("a", without), &SOURCES).expect("one is missing");
        assert!(named.contains(": 2.3."), "{named}");
        let bare = whole().map(|mut result| {
            if result["id"] == "2.3" {
                result["run"] = Value::Null;
            }
            result
        });
        let named = outdated(&run("a", bare), &SOURCES).expect("one has no digest");
        assert!(named.contains(": 2.3."), "{named}");
    }

    #[test]
    fn a_run_of_some_lessons_updates_only_those() {
        let mut stored = run("a", whole());
        let digest = || Some("of now".to_owned());
        let found = [
            result("2.3", "not-reproduced", &["oversell"], digest()),
            result("1.3", "not-reproduced", &["oversell"], None),
        ];
        update(&mut stored, run("b", found));
        assert_eq!(stored.conditions["commit"], "a");
        assert_eq!(stored.lessons.len(), lessons().count());
        let of = |id| {
            stored
                .result_of(id)
                .map(|found| (found.verdict, found.sources()))
        };
        assert_eq!(
            of("2.3"),
            Some((ClaimVerdict::NotReproduced, Some("of now")))
        );
        assert_eq!(
            of("1.3").map(|(verdict, _)| verdict),
            Some(ClaimVerdict::Reproduced)
        );
        update(&mut stored, run("c", whole()));
        assert_eq!(stored.conditions["commit"], "c");
    }

    #[test]
    fn a_run_on_fewer_systems_replaces_nothing() {
        let digest = |text: &str| Some(text.to_owned());
        let all = [
            "oversell",
            "redisson-3.11.2",
            "redisson-3.13.6",
            "redisson-4.7.0",
        ];
        let id = "2.10.1.watchdog";
        let mut stored = run("a", [result(id, "reproduced", &all, digest("before"))]);
        update(
            &mut stored,
            run("b", [result(id, "reproduced", &all[..1], digest("now"))]),
        );
        assert_eq!(
            stored.result_of(id).and_then(LessonResult::sources),
            Some("before")
        );
        update(
            &mut stored,
            run("b", [result(id, "unavailable", &[], digest("now"))]),
        );
        assert_eq!(
            stored.result_of(id).and_then(LessonResult::sources),
            Some("before")
        );
        update(
            &mut stored,
            run("b", [result(id, "noise", &all, digest("now"))]),
        );
        assert_eq!(
            stored.result_of(id).and_then(LessonResult::sources),
            Some("now")
        );
    }

    /// A run that has measured one ratio, of which `least` or more is claimed.
    fn measured(besides: &str, least: f64, median: f64) -> Verdicts {
        let mut found = result("1.6.2", "noise", &["oversell"], Some("now".to_owned()));
        let ratio = json!({"of": "one / other", "least": least, "most": null, "medians": [median]});
        found["rates"] = json!({"besides": besides, "ratios": [ratio]});
        run("a", [found])
    }

    /// The stored lesson after runs in which its ratio had these medians.
    fn after_runs(besides: &str, medians: &[f64]) -> LessonResult {
        let mut stored = run("a", []);
        for median in medians {
            update(&mut stored, measured(besides, 1.15, *median));
        }
        stored.lessons.remove(0)
    }

    #[test]
    fn a_rate_is_judged_by_its_last_five_runs() {
        use ClaimVerdict::{Noise, NotReproduced, Reproduced};
        for (medians, verdict) in [
            // The first is judged by its rounds.
            (&[1.3][..], Noise),
            (&[1.3, 1.2, 1.4, 1.3, 1.2][..], Reproduced),
            (&[0.9, 1.1, 1.0, 1.1, 0.8][..], NotReproduced),
            // One of the five disagrees.
            (&[1.3, 1.2, 1.1, 1.3, 1.2][..], Noise),
            // The oldest of six does not count.
            (&[1.1, 1.3, 1.2, 1.4, 1.3, 1.2][..], Reproduced),
        ] {
            let stored = after_runs("reproduced", medians);
            assert_eq!(stored.verdict, verdict, "{medians:?}");
            let kept = &rates(&stored).expect("it has rates").ratios[0].medians;
            let newest = medians.len().saturating_sub(MAX_STORED_RUNS);
            assert_eq!(kept, &medians[newest..]);
        }
        let said = after_runs("reproduced", &[1.3, 1.2, 1.4]).seen.en;
        let runs = "In the last 3 stored runs a ratio of 1.30 (1.20 to 1.40).";
        assert!(said.ends_with(runs), "{said}");
    }

    #[test]
    fn rates_prove_no_claim_whose_other_half_fails() {
        let stored = after_runs("not-reproduced", &[1.3, 1.2, 1.4]);
        assert_eq!(stored.verdict, ClaimVerdict::NotReproduced);
    }

    #[test]
    fn a_rate_of_another_claim_begins_anew() {
        let mut stored = measured("reproduced", 1.15, 1.3);
        update(&mut stored, measured("reproduced", 2.0, 1.4));
        let kept = rates(&stored.lessons[0]).expect("it has rates");
        assert_eq!(kept.ratios[0].medians, [1.4]);
    }
}
