//! What a run has found: a row for each lesson that it tried, and what they come to together.

use super::{Lesson, NoVerdict, Seen, Verdict, Words};
use crate::bilingual::Bilingual;
use crate::{failure::Failure, load::conditions::Conditions};
use serde::Serialize;
use std::time::Duration;

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
    /// What it comes to here otherwise.
    pub(super) expected: Verdict,
    /// Whether the verdict rests on timing.
    pub(super) timing: bool,
    #[serde(flatten)]
    pub(super) seen: Seen,
    pub(super) took_ms: u64,
    /// Why it went wrong, where it did.
    #[serde(skip)]
    pub(super) failed: Option<String>,
}

impl Tried {
    /// This lesson, of what its experiment has come to.
    pub(super) fn of(
        chapter: &'static str,
        lesson: &Lesson,
        seen: Result<Seen, NoVerdict>,
        took: Duration,
    ) -> Self {
        let failed = match &seen {
            Err(NoVerdict::Failed(why)) => Some(why.to_string()),
            _ => None,
        };
        Self {
            id: lesson.id,
            chapter,
            claim: lesson.claim,
            expected: lesson.expected,
            timing: lesson.timing,
            seen: seen.unwrap_or_else(|why| {
                Seen::unavailable(match why {
                    NoVerdict::Unavailable(words) => words,
                    NoVerdict::Failed(why) => Words::same(why.to_string()),
                })
            }),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            failed,
        }
    }

    pub(super) const fn verdict(&self) -> Verdict {
        self.seen.verdict
    }

    /// Whether a claim that does not rest on timing came out otherwise than it does here.
    pub(super) fn is_otherwise(&self) -> bool {
        !self.timing && self.verdict() != Verdict::Unavailable && self.verdict() != self.expected
    }
}

impl Found {
    /// How many claims came out so.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let so = self
            .lessons
            .iter()
            .filter(|tried| tried.verdict() == verdict);
        so.count()
    }

    /// # Errors
    ///
    /// [`Failure::Promise`] where a claim came out otherwise than it does here, [`Failure::Unusable`] where one could not be
    /// tried.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let otherwise = self.lessons.iter().filter(|tried| tried.is_otherwise());
        let otherwise: Vec<_> = otherwise
            .map(|t| format!("{}: {}", t.id, t.verdict().words().en))
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
    use crate::course::find;

    fn found(id: &str, seen: Result<Verdict, &str>) -> Found {
        let seen = match seen {
            Ok(verdict) => Ok(Seen {
                verdict,
                ..Seen::unavailable(Words::same("x"))
            }),
            Err(why) => Err(NoVerdict::failed(why)),
        };
        let lesson = find(id).expect("a lesson");
        Found {
            conditions: Conditions::default(),
            lessons: vec![Tried::of("1", lesson, seen, Duration::ZERO)],
        }
    }

    #[test]
    fn only_what_does_not_rest_on_timing_and_came_out_otherwise_breaks_a_promise() {
        assert!(matches!(
            found("1.4", Ok(Verdict::NotReproduced)).verdict(),
            Err(Failure::Promise(_))
        ));
        assert!(found("1.4", Ok(Verdict::Reproduced)).verdict().is_ok());
        assert!(found("1.4", Ok(Verdict::Unavailable)).verdict().is_ok());
        assert!(found("1.6.2", Ok(Verdict::NotReproduced)).verdict().is_ok());
    }

    #[test]
    fn what_went_wrong_is_neither_kept_nor_broken() {
        let failed = found("1.4", Err("no Redis"));
        assert!(matches!(failed.verdict(), Err(Failure::Unusable(_))));
    }
}
