//! The twin of a claim: a system in which the claim is false, so the experiment must not reproduce it.
//!
//! Most twins follow from the kind of the experiment: another strategy, the race without its cure, the first line left out. A custom
//! experiment has its twin's arguments in the table of `experiments/mod.rs`.

use oversell::{
    claims::{Lesson, Run, Twin, TwinChange, TypedLine, Words, words},
    seckill::check::OrdersVerdict,
};
use oversell_lab::terminal::bilingual::Bilingual;

/// What is tried of a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    Claim,
    Twin,
}

/// The strategy that oversells: the twin of a claim that one sells exactly.
pub(super) const OVERSELLS: &str = "none";
/// The strategy that sells exactly and never retries: the twin of a claim that one oversells or retries.
pub(super) const EXACT: &str = "single-update";
/// A step of the seckill for which the checker reaches another verdict than this one.
pub(super) const fn step_with_another_verdict(verdict: OrdersVerdict) -> &'static str {
    match verdict {
        OrdersVerdict::Exact => "check-then-deduct",
        _ => "redis-rlock",
    }
}

/// Describes the twin of a lesson for a reader. `None` if it has no twin, which a unit test refuses for each lesson that is tried.
pub(super) fn describe_twin(lesson: &Lesson) -> Option<Words> {
    let theirs = lesson.theirs.as_ref().map(|script| describe_change(&script.twin));
    if lesson.why_not().is_some() {
        return theirs;
    }
    let both: Vec<_> = [describe_our_twin(lesson)?].into_iter().chain(theirs).collect();
    Some(Words::join(&both, ["；", "; "]))
}

/// Describes the twin on our service; `None` if the lesson does not, and the kind of its experiment implies none.
fn describe_our_twin(lesson: &Lesson) -> Option<Words> {
    match (&lesson.twin, &lesson.run) {
        (Some(Twin::Is(Bilingual { zh, en })), _) => Some(Words::new(*zh, *en)),
        (Some(Twin::Typed(n, line)), _) if line.is_empty() => Some(words!("不输入第 {n} 行", "line {n} is not typed")),
        (Some(Twin::Typed(n, line)), _) => Some(words!("第 {n} 行换成 {line}", "line {n} is {line}")),
        (Some(Twin::Run(run)), _) | (None, run) => {
            let each = run.parts().iter();
            let each = each.map(|run| describe_twin_run(run, lesson.twin.is_some()));
            let each = each.collect::<Option<Vec<_>>>()?;
            Some(Words::join(&each, ["；", "; "]))
        }
    }
}

/// The lines of a typed lesson with its twin's change, and where that is: one line is replaced or left out; without a change, the
/// first is left out.
pub(super) fn lines_of_twin(lesson: &Lesson) -> (Vec<TypedLine>, usize) {
    let mut lines = lesson.by_hand.clone();
    let (index, run) = match &lesson.twin {
        Some(Twin::Typed(n, run)) => (n - 1, &run[..]),
        _ => (0, ""),
    };
    match run {
        "" => drop(lines.remove(index)),
        run => run.clone_into(&mut lines[index].run),
    }
    (lines, index)
}

/// Describes what the twin changes in the lines for the Java process.
fn describe_change(twin: &TwinChange) -> Words {
    match twin {
        TwinChange::Line(n, run) if run.is_empty() => {
            words!("Java 进程少第 {n} 行", "line {n} for the Java process is left out")
        }
        TwinChange::Line(n, run) => words!("Java 进程的第 {n} 行换成 {run}", "line {n} for the Java process is {run}"),
        TwinChange::Word(word, other) if other.is_empty() => {
            words!("Java 进程里去掉{word}", "the Java process is not told{word}")
        }
        TwinChange::Word(word, other) => {
            words!("Java 进程里 {word} 换成 {other}", "the Java process is told {other} for {word}")
        }
    }
}

/// Describes the twin of an experiment of this kind; `None` if the kind implies none. `is_twin`: `run` is that twin.
fn describe_twin_run(run: &Run, is_twin: bool) -> Option<Words> {
    let place = |other: &str| words!("换成 {other}", "{other} in its place");
    Some(match run {
        Run::Replay => words!("未修正的竞态，却说修正过", "the race without its cure, said to have it"),
        Run::Exact { .. } => place(OVERSELLS),
        Run::Oversells { .. } | Run::RetriesGrow(_) | Run::FewThenMostFail(_) => place(EXACT),
        Run::Compared { first, second, .. } => {
            let (one, other) = if is_twin { (first, second) } else { (second, first) };
            words!("{} 与 {} 相比", "{} compared with {}", one.strategy, other.strategy)
        }
        Run::Crowd { comes_to, .. } => place(step_with_another_verdict(*comes_to)),
        Run::ExclusiveRoute(_) => words!("另一把锁的路由", "a route with another lock"),
        Run::Typed => words!("不输入第 1 行", "the first line is not typed"),
        Run::All(_) | Run::Custom | Run::NotRun(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oversell::claims::lessons;

    #[test]
    fn every_lesson_that_is_tried_has_a_twin() {
        for lesson in lessons().filter(|lesson| lesson.is_tried()) {
            assert!(describe_twin(lesson).is_some(), "{} has no twin", lesson.id);
            if let Some(Twin::Typed(n, _)) = &lesson.twin {
                assert!((1..=lesson.by_hand.len()).contains(n), "{}", lesson.id);
            }
        }
    }
}
