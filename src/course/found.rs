//! What a run has found: a row for each lesson that it tried, and what they come to together.

use super::{Figures, Verdict, Words};
use crate::bilingual::Bilingual;
use crate::{failure::Failure, load::conditions::Conditions};
use serde::Serialize;

/// All that a run has found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) conditions: Conditions,
    pub(super) lessons: Vec<Tried>,
}

/// A lesson, and what came of it.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    pub(super) id: &'static str,
    pub(super) chapter: &'static str,
    pub(super) claim: Bilingual,
    pub(super) verdict: Verdict,
    /// What it comes to here otherwise.
    pub(super) expected: Verdict,
    /// Whether the verdict rests on timing.
    pub(super) timing: bool,
    pub(super) seen: Words,
    pub(super) figures: Figures,
    pub(super) took_ms: u64,
    /// Why it went wrong, where it did.
    #[serde(skip)]
    pub(super) failed: Option<String>,
}

impl Tried {
    /// Whether a claim that does not rest on timing came out otherwise than it does here.
    pub(super) fn is_otherwise(&self) -> bool {
        !self.timing && self.verdict != Verdict::Unavailable && self.verdict != self.expected
    }
}

impl Found {
    /// # Errors
    ///
    /// [`Failure::Promise`] where a claim came out otherwise than it does here, [`Failure::Unusable`] where one could not be
    /// tried.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let otherwise = self.lessons.iter().filter(|tried| tried.is_otherwise());
        let otherwise: Vec<_> = otherwise
            .map(|t| format!("{}: {}", t.id, t.verdict.words().en))
            .collect();
        let failed = self
            .lessons
            .iter()
            .filter_map(|tried| Some(format!("{}: {}", tried.id, tried.failed.as_ref()?)));
        let failed: Vec<_> = failed.collect();
        match (otherwise.is_empty(), failed.is_empty()) {
            (false, _) => Err(Failure::Promise(format!(
                "otherwise than expected: {}",
                otherwise.join("; ")
            ))),
            (true, false) => Err(Failure::Unusable(format!(
                "could not be tried: {}",
                failed.join("; ")
            ))),
            (true, true) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::{Lesson, find};

    fn found(id: &str, verdict: Verdict, failed: Option<&str>) -> Found {
        let (chapter, lesson) = ("1", find(id).expect("a lesson"));
        let Lesson {
            claim,
            expected,
            timing,
            ..
        } = *lesson;
        let (seen, figures, took_ms, failed) = (
            Words::same("x"),
            Figures::default(),
            1,
            failed.map(str::to_owned),
        );
        let tried = Tried {
            id: lesson.id,
            chapter,
            claim,
            verdict,
            expected,
            timing,
            seen,
            figures,
            took_ms,
            failed,
        };
        Found {
            conditions: Conditions::default(),
            lessons: vec![tried],
        }
    }

    #[test]
    fn only_what_does_not_rest_on_timing_and_came_out_otherwise_breaks_a_promise() {
        assert!(matches!(
            found("1.4", Verdict::NotReproduced, None).verdict(),
            Err(Failure::Promise(_))
        ));
        assert!(found("1.4", Verdict::Reproduced, None).verdict().is_ok());
        assert!(found("1.4", Verdict::Unavailable, None).verdict().is_ok());
        assert!(
            found("1.6.2", Verdict::NotReproduced, None)
                .verdict()
                .is_ok()
        );
    }

    #[test]
    fn what_went_wrong_is_neither_kept_nor_broken() {
        let failed = found("1.4", Verdict::Unavailable, Some("no Redis"));
        assert!(matches!(failed.verdict(), Err(Failure::Unusable(_))));
    }
}
