//! [003] Deadlocks in MySQL as races: two transactions, statement by statement, without the cure and with it.
//!
//! 1. A and B are the two transactions of a lesson (`classroom/deadlocks/`), on the instance that directs.
//! 2. Each statement waits for the pace. What the server says of it becomes an event: how many rows its transaction has
//!    locked, that it waits, that it was rolled back, that it has committed.
//!
//! What it survives: nothing is lost, with the cure or without. **What breaks it**: nothing; where it is
//! cancelled, its connections are closed and its table is dropped.
//!
//! Next: `races/limits.rs`.

use super::{
    act::Act,
    event::ReplayEvent,
    play::Play,
    race::{Ends, Half, Race},
    step::Step,
};
use crate::{
    bilingual::leak,
    classroom::deadlocks::{ALL, DEADLOCK, DeadlockLesson, DeadlockStep, Side, TwoTransactions},
    error::Error,
};
use std::{fmt::Display, sync::LazyLock};

const DEADLOCKED: Ends = Ends::NOTHING.saw(
    "error 1213, 1 committed",
    "错误 1213，1 个提交",
    "error 1213, 1 committed",
);
const TIMED_OUT: Ends = Ends::NOTHING.saw(
    "error 1205, 1 committed",
    "错误 1205，1 个提交",
    "error 1205, 1 committed",
);
const CURED: Ends = Ends::NOTHING.saw("2 committed", "2 个提交", "2 committed");

/// A race for each lesson.
pub(super) static RACES: LazyLock<Vec<Race>> = LazyLock::new(|| ALL.iter().map(race).collect());

fn race(lesson: &'static DeadlockLesson) -> Race {
    let half = |steps, ends| Half {
        act: Act::Deadlock(lesson),
        steps,
        ends,
    };
    let flaw = match lesson.error {
        DEADLOCK => DEADLOCKED,
        _ => TIMED_OUT,
    };
    Race {
        lessons: vec![leak(format!("003.deadlock.{}", lesson.slug))].leak(),
        title: lesson.title,
        breaks: lesson.breaks,
        cure: lesson.cure,
        begin: &[],
        flaw: half(&[Step::Also(|play| Box::pin(played(play, false)))], flaw),
        cured: half(&[Step::Also(|play| Box::pin(played(play, true)))], CURED),
    }
}

async fn played(play: &mut Play, cured: bool) -> Result<(), Error> {
    let Act::Deadlock(lesson) = play.act else {
        return Err(Error::replay("it is no deadlock"));
    };
    for side in [Side::A, Side::B] {
        tell(play, side, "start", "START TRANSACTION … COMMIT");
    }
    let mut two = TwoTransactions::open(&play.ctx, lesson, cured, true).await?;
    let mut locked = [0; 2];
    for (side, sql) in lesson.script(cured) {
        if let Some(answered) = two.hear(side).await? {
            see(play, &mut locked, &answered);
        }
        if two.has_failed(side) {
            continue;
        }
        play.step(format!("{side:?}：{sql}"), format!("{side:?}: {sql}"))
            .await?;
        tell(play, side, "statement", sql);
        match two.send(side, sql).await? {
            Some(answered) => see(play, &mut locked, &answered),
            None => tell(play, side, "waits", ""),
        }
    }
    let ended = two.end(false).await?;
    let error = ended
        .error
        .map_or_else(String::new, |error| format!("error {error}, "));
    play.note(format!("{error}{} committed", ended.committed.len()));
    Ok(())
}

/// Tells what a statement came to. `locked`: how many rows each has locked.
fn see(play: &Play, locked: &mut [u64; 2], step: &DeadlockStep) {
    let locked = &mut locked[step.side as usize];
    if let Some(error) = step.error {
        tell(play, step.side, "conflict", error);
    } else if step.sql == "COMMIT" {
        tell(play, step.side, "committed", "");
    } else if let Some(rows) = step.row_locks.filter(|rows| rows > locked) {
        *locked = rows;
        tell(play, step.side, "locked", rows);
    }
}

fn tell(play: &Play, side: Side, event: &str, value: impl Display) {
    let value = Some(value.to_string())
        .filter(|value| !value.is_empty())
        .map(Into::into);
    play.log().add(ReplayEvent {
        instance: Some(play.ctx.instance.clone()),
        value,
        ..ReplayEvent::of(format!("{side:?}"), event)
    });
}
