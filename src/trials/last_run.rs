//! The results of the last full run, `last_run.json`. docs/course.md shows them, and a run reports each verdict that differs.
//!
//! `make course` writes the file, on a quiet machine.

use crate::claims::{ClaimVerdict, verdicts::Verdicts};
use std::sync::LazyLock;

pub(super) static LAST_RUN: LazyLock<Verdicts> =
    LazyLock::new(|| Verdicts::read(include_str!("last_run.json")));

/// The expected verdict of a lesson tried on these systems: that of the last full run, or `Reproduced` if it has none. Without
/// the libraries of that run it is what our service came to there; `None` on other systems.
pub(super) fn verdict(id: &str, on: &[String]) -> Option<ClaimVerdict> {
    match LAST_RUN.of(id) {
        None => Some(ClaimVerdict::Reproduced),
        Some(found) if found.verdict == ClaimVerdict::Unavailable => Some(ClaimVerdict::Reproduced),
        Some(found) if found.on == on => Some(found.verdict),
        Some(found) if on.len() == 1 && found.on.starts_with(on) => found.of_ours(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::find;

    #[test]
    fn each_of_its_lessons_is_one_of_the_course() {
        for found in &LAST_RUN.lessons {
            assert!(find(&found.id).is_some(), "{}", found.id);
        }
    }
}
