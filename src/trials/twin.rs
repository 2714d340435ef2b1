//! The twin of a claim: a system in which the claim is false, so the experiment must not reproduce it.
//!
//! Most twins follow from the kind of the experiment: another strategy, the race without its cure, the first line left out. A custom
//! experiment has its twin's arguments in `experiments!`.

use crate::{
    claims::{Lesson, Run, Twin, TwinChange, TypedLine, Words, words},
    seckill::check::OrdersVerdict,
    terminal::bilingual::Bilingual,
};

/// Oversells.
pub(super) const OVERSELLS: &str = "none";
/// Sells exactly, and never tries again.
pub(super) const EXACT: &str = "single-update";
/// A step of the seckill with another verdict of the checker.
pub(super) const fn other_step(comes_to: OrdersVerdict) -> &'static str {
    match comes_to {
        OrdersVerdict::Exact => "check-then-deduct",
        _ => "redis-rlock",
    }
}
/// A route without a limit.
pub(super) const UNLIMITED: &str = "/seckill/unlimited";

/// The twin of a lesson in words. A unit test refuses a tried lesson without one.
pub(super) fn words_of(lesson: &Lesson) -> Option<Words> {
    let theirs = lesson.theirs.as_ref().map(|script| instead(&script.twin));
    if lesson.why_not().is_some() {
        return theirs;
    }
    let both: Vec<_> = [our_twin(lesson)?].into_iter().chain(theirs).collect();
    Some(Words::join(&both, ["；", "; "]))
}

fn our_twin(lesson: &Lesson) -> Option<Words> {
    match (&lesson.twin, &lesson.run) {
        (Some(Twin::Is(Bilingual { zh, en })), _) => Some(Words::new(*zh, *en)),
        (Some(Twin::Typed(n, line)), _) if line.is_empty() => {
            Some(words!("不输入第 {n} 行", "line {n} is not typed"))
        }
        (Some(Twin::Typed(n, line)), _) => {
            Some(words!("第 {n} 行换成 {line}", "line {n} is {line}"))
        }
        (Some(Twin::Run(run)), _) | (None, run) => {
            let each = run.parts().iter();
            let each = each.map(|run| words_of_run(run, lesson.twin.is_some()));
            let each = each.collect::<Option<Vec<_>>>()?;
            Some(Words::join(&each, ["；", "; "]))
        }
    }
}

/// The lines that are typed in its place.
pub(super) fn lines_of(lesson: &Lesson) -> Vec<TypedLine> {
    let mut lines = lesson.by_hand.clone();
    match &lesson.twin {
        Some(Twin::Typed(n, run)) if !run.is_empty() => run.clone_into(&mut lines[n - 1].run),
        Some(Twin::Typed(n, _)) => drop(lines.remove(n - 1)),
        _ => drop(lines.remove(0)),
    }
    lines
}

/// How the lines for the Java process differ.
fn instead(twin: &TwinChange) -> Words {
    match twin {
        TwinChange::Line(n, run) if run.is_empty() => words!(
            "Java 进程少第 {n} 行",
            "line {n} for the Java process is left out"
        ),
        TwinChange::Line(n, run) => words!(
            "Java 进程的第 {n} 行换成 {run}",
            "line {n} for the Java process is {run}"
        ),
        TwinChange::Word(word, other) if other.is_empty() => words!(
            "Java 进程里去掉{word}",
            "the Java process is not told{word}"
        ),
        TwinChange::Word(word, other) => words!(
            "Java 进程里 {word} 换成 {other}",
            "the Java process is told {other} for {word}"
        ),
    }
}

/// The twin of this kind of experiment; `instead` if `run` is itself the lesson's twin.
fn words_of_run(run: &Run, instead: bool) -> Option<Words> {
    let place = |other: &str| words!("换成 {other}", "{other} in its place");
    Some(match run {
        Run::Replay => words!(
            "不加解法的竞争，却说有解法",
            "the race without its cure, said to have it"
        ),
        Run::Exact { .. } => place(OVERSELLS),
        Run::Oversells { .. } | Run::RetriesGrow(_) | Run::FewThenMostFail(_) => place(EXACT),
        Run::Compared { first, second, .. } => {
            let (one, other) = if instead {
                (first, second)
            } else {
                (second, first)
            };
            words!(
                "{} 与 {} 相比",
                "{} compared with {}",
                one.strategy,
                other.strategy
            )
        }
        Run::Crowd { comes_to, .. } => place(other_step(*comes_to)),
        Run::RefusedBeside(_) => place(other_step(OrdersVerdict::Exact)),
        Run::Deadlock(_) => words!("只有解法", "its cure alone"),
        Run::Burst(burst) => place(if instead { burst.route } else { UNLIMITED }),
        Run::ExclusiveRoute(_) => words!("另一把锁的路由", "a route with another lock"),
        Run::Typed => words!("不输入第 1 行", "the first line is not typed"),
        Run::All(_) | Run::Custom | Run::NotRun(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::lessons;

    #[test]
    fn every_lesson_that_is_tried_has_a_twin() {
        for lesson in lessons().filter(|lesson| lesson.is_tried()) {
            assert!(words_of(lesson).is_some(), "{} has no twin", lesson.id);
            if let Some(Twin::Typed(n, _)) = &lesson.twin {
                assert!((1..=lesson.by_hand.len()).contains(n), "{}", lesson.id);
            }
        }
    }
}
