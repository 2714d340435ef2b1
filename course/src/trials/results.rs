//! The results of a run: a row for each lesson, and a verdict on all of them.

use super::{NoVerdict, Observation, observation::OURS};
use oversell::{
    claims::{ClaimVerdict, Lesson, Words, lessons, verdicts::LAST_RUN},
    load::conditions::Conditions,
};
use oversell_lab::terminal::{
    bilingual::Bilingual,
    chinese::localized,
    failure::{Failure, unusable_localized},
};
use serde::Serialize;
use std::time::Duration;

/// The results of a run of `oversell course`, in the order in which the lessons were tried.
#[derive(Debug, Serialize)]
pub(super) struct CourseResults {
    pub(super) conditions: Conditions,
    pub(super) lessons: Vec<TrialResult>,
}

/// The twin that was tried in place of a lesson.
#[derive(Debug, Serialize)]
pub(super) struct TwinResult {
    pub(super) what: Words,
    verdict: ClaimVerdict,
}

/// The result of one lesson, or of its twin.
#[derive(Debug, Serialize)]
pub(super) struct TrialResult {
    pub(super) id: &'static str,
    pub(super) chapter: &'static str,
    pub(super) place: &'static str,
    pub(super) claim: Bilingual,
    /// Whether the verdict rests on timing.
    pub(super) timing: bool,
    /// If a twin was tried, `seen` is what was seen of the twin.
    pub(super) twin: Option<TwinResult>,
    #[serde(flatten)]
    pub(super) seen: Observation,
    pub(super) took_ms: u64,
    /// Why the experiment failed, if it did.
    #[serde(skip)]
    pub(super) failed: Option<String>,
}

impl TrialResult {
    /// The result of a lesson, or of its `twin`. Without a verdict of the experiment it is unavailable, and the words are the
    /// reason.
    pub(super) fn of(
        chapter: &'static str,
        lesson: &Lesson,
        twin: Option<Words>,
        seen: Result<Observation, NoVerdict>,
        took: Duration,
    ) -> Self {
        let failed = match &seen {
            Err(NoVerdict::Failed(why)) => Some(why.to_string()),
            _ => None,
        };
        let seen = seen.unwrap_or_else(|why| {
            let words = match why {
                NoVerdict::Unavailable(words) => words,
                NoVerdict::Failed(why) => Words::untranslated(why.to_string()),
            };
            let on = Vec::new();
            Observation { on, ..Observation::of(ClaimVerdict::Unavailable, words) }
        });
        let verdict = seen.verdict;
        Self {
            id: lesson.id,
            chapter,
            place: lesson.place,
            claim: lesson.claim,
            timing: lesson.timing,
            twin: twin.map(|what| TwinResult { what, verdict }),
            seen,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            failed,
        }
    }

    pub(super) const fn verdict(&self) -> ClaimVerdict {
        self.seen.verdict
    }

    /// Whether a lesson's verdict differs from the stored one, unless it rests on timing or is unavailable. A twin's is
    /// unexpected unless it is not reproduced or noise.
    pub(super) fn is_unexpected(&self) -> bool {
        if self.twin.is_some() {
            return !matches!(self.verdict(), ClaimVerdict::NotReproduced | ClaimVerdict::Noise);
        }
        let before = expected_verdict(self.id, &self.seen.on);
        !self.timing && self.verdict() != ClaimVerdict::Unavailable && before.is_some_and(|before| before != self.verdict())
    }
}

/// The expected verdict of a lesson tried on these systems: that of the last full run, or `Reproduced` if it has none. Without
/// the libraries of that run it is what our service came to there; `None` on other systems.
fn expected_verdict(id: &str, on: &[String]) -> Option<ClaimVerdict> {
    match LAST_RUN.result_of(id) {
        None => Some(ClaimVerdict::Reproduced),
        Some(found) if found.verdict == ClaimVerdict::Unavailable => Some(ClaimVerdict::Reproduced),
        Some(found) if found.on == on => Some(found.verdict),
        Some(found) if on.len() == 1 && found.on.starts_with(on) => Some(found.own_verdict()),
        Some(_) => None,
    }
}

impl CourseResults {
    /// Whether every lesson of the course was tried, on each system that it is about, and no experiment failed.
    pub(super) fn is_whole(&self) -> bool {
        let is_done = |lesson: &Lesson| {
            let ours = lesson.why_not().is_none().then(|| OURS.to_owned());
            let theirs = lesson.theirs.iter().flat_map(|script| script.on.versions());
            let mut systems = ours.into_iter().chain(theirs.map(|java| java.to_string()));
            let found = self.lessons.iter().find(|tried| tried.id == lesson.id);
            found.is_some_and(|tried| tried.failed.is_none() && systems.all(|system| tried.seen.on.contains(&system)))
        };
        lessons().all(is_done)
    }

    /// The number of claims that are reproduced, not reproduced, noise, and unavailable.
    pub(super) fn counts(&self) -> [usize; 4] {
        use ClaimVerdict::{Noise, NotReproduced, Reproduced, Unavailable};
        [Reproduced, NotReproduced, Noise, Unavailable]
            .map(|verdict| self.lessons.iter().filter(|tried| tried.verdict() == verdict).count())
    }

    /// It fails with [`Failure::Promise`] if a verdict is unexpected, else with [`Failure::Unusable`] if an experiment failed.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let unexpected = self.lessons.iter().filter(|tried| tried.is_unexpected());
        let unexpected: Vec<_> = unexpected.map(|t| format!("{}: {}", t.id, t.verdict().words().localized())).collect();
        let failed = self.lessons.iter().filter_map(|tried| Some(format!("{}: {}", tried.id, tried.failed.as_ref()?)));
        let failed: Vec<_> = failed.collect();
        match (unexpected.is_empty(), failed.is_empty()) {
            (false, _) => Err(Failure::Promise(localized!(
                "与上一次完整运行不同：{}",
                "otherwise than in the last full run: {}",
                unexpected.join("; ")
            ))),
            (true, false) => Err(unusable_localized!("没能验证：{}", "could not be tried: {}", failed.join("; "))),
            (true, true) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oversell::claims::{find, verdicts::LessonResult};

    fn found(id: &str, seen: Result<ClaimVerdict, &str>) -> CourseResults {
        let seen = match seen {
            Ok(verdict) => Ok(Observation::of(verdict, Words::untranslated("x"))),
            Err(why) => Err(NoVerdict::failed(why)),
        };
        let lesson = find(id).expect("a lesson");
        CourseResults {
            conditions: Conditions::default(),
            lessons: vec![TrialResult::of("1", lesson, None, seen, Duration::ZERO)],
        }
    }

    #[test]
    fn a_changed_verdict_fails_unless_it_rests_on_timing() {
        assert!(matches!(found("1.4", Ok(ClaimVerdict::NotReproduced)).verdict(), Err(Failure::Promise(_))));
        assert!(found("1.4", Ok(ClaimVerdict::Reproduced)).verdict().is_ok());
        assert!(found("1.4", Ok(ClaimVerdict::Unavailable)).verdict().is_ok());
        assert!(found("1.6.2", Ok(ClaimVerdict::NotReproduced)).verdict().is_ok());
    }

    #[test]
    fn without_its_libraries_a_claim_is_held_against_our_own_verdict() {
        let all = |found: &&LessonResult| found.on.len() > 1 && found.on[0] == OURS && found.own_verdict() != found.verdict;
        let found = LAST_RUN.lessons.iter().find(all).expect("one of Redisson");
        let expected = |on: &[String]| expected_verdict(&found.id, on);
        assert_eq!(expected(&found.on), Some(found.verdict));
        assert_eq!(expected(&found.on[..1]), Some(found.own_verdict()));
        assert_eq!(expected(&found.on[1..]), None);
    }

    #[test]
    fn a_twin_that_is_not_refused_fails() {
        use ClaimVerdict::{Noise, Reproduced, Unavailable};
        for (verdict, refused) in [(Reproduced, false), (Unavailable, false), (Noise, true)] {
            let mut found = found("1.6.2", Ok(verdict));
            let what = Words::untranslated("x");
            found.lessons[0].twin = Some(TwinResult { what, verdict });
            assert_eq!(found.verdict().is_ok(), refused, "{verdict:?}");
        }
    }

    #[test]
    fn a_run_with_a_failed_or_missing_lesson_is_not_whole() {
        let tried = |lesson: &Lesson| {
            let mut seen = Observation::of(ClaimVerdict::Noise, Words::default());
            let theirs = lesson.theirs.iter().flat_map(|script| script.on.versions());
            seen.on.extend(theirs.map(|java| java.to_string()));
            TrialResult::of("1", find(lesson.id).expect("it"), None, Ok(seen), Duration::ZERO)
        };
        let mut run = CourseResults { conditions: Conditions::default(), lessons: lessons().map(tried).collect() };
        assert!(run.is_whole());
        let of_java = run.lessons.iter_mut().find(|tried| tried.seen.on.len() > 1).expect("one of Redisson");
        let (id, system) = (of_java.id, of_java.seen.on.pop().expect("a version"));
        assert!(!run.is_whole(), "a run on fewer systems");
        let of_java = run.lessons.iter_mut().find(|tried| tried.id == id).expect("the same");
        of_java.seen.on.push(system);
        run.lessons[3].failed = Some("no Redis".to_owned());
        assert!(!run.is_whole());
        run.lessons.remove(3);
        assert!(!run.is_whole());
    }

    #[test]
    fn a_failed_trial_is_unusable() {
        let failed = found("1.4", Err("no Redis"));
        assert!(matches!(failed.verdict(), Err(Failure::Unusable(_))));
    }
}
