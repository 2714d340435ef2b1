//! [003] Deadlocks in MySQL as races: two transactions, statement by statement, without the cure and with it.
//!
//! 1. A and B are the two transactions of a lesson (`classroom/deadlocks/`), on the instance that directs.
//! 2. Each statement waits for the pace. What the server says of it becomes an event: how many rows its transaction has
//!    locked, that it waits, that it was rolled back, that it has committed.
//! 3. At the pace `scheduler` each transaction sends its next statement when it is asked to, in any order of the two.
//!
//! What it survives: nothing is lost, with the cure or without. **What breaks it**: nothing; if it is
//! cancelled, its connections are closed and its table is dropped.
//!
//! Next: `races/limits.rs`.

use super::{
    act::Act,
    options::{NextMove, Pace},
    play::Play,
    race::{Anomaly, ExpectedResult, Race, Variant},
    step::Step,
};
use crate::{
    classroom::deadlocks::{ALL, BEGIN, DEADLOCK, DeadlockLesson, DeadlockStep, Side, TwoTransactions},
    error::Error,
    replay_log::ReplayEvent,
};
use oversell_lab::terminal::bilingual::leak;
use std::{collections::VecDeque, fmt::Display, sync::LazyLock, time::Duration};
use tokio::time::timeout;

/// How often it is checked whether a waiting transaction was answered: the event of the answer is late by this at most.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The result of a flaw with a deadlock: error 1213, one transaction commits.
const DEADLOCKED: ExpectedResult =
    ExpectedResult::NOTHING.noting("error 1213, 1 committed", "错误 1213，1 个提交", "error 1213, 1 committed");
/// The result of a flaw with a lock wait timeout: error 1205, one transaction commits.
const TIMED_OUT: ExpectedResult =
    ExpectedResult::NOTHING.noting("error 1205, 1 committed", "错误 1205，1 个提交", "error 1205, 1 committed");
/// The result of every cure: both transactions commit.
const CURED: ExpectedResult = ExpectedResult::NOTHING.noting("2 committed", "2 个提交", "2 committed");

/// One race for each deadlock lesson.
pub(super) static RACES: LazyLock<Vec<Race>> = LazyLock::new(|| ALL.iter().map(race_of_lesson).collect());

/// The race of a lesson, `003.deadlock.{slug}`: each of its variants is one custom step.
fn race_of_lesson(lesson: &'static DeadlockLesson) -> Race {
    let half = |steps, expected| Variant { act: Act::Deadlock(lesson), steps, expected };
    let flaw = match lesson.error {
        DEADLOCK => DEADLOCKED,
        _ => TIMED_OUT,
    };
    Race {
        lessons: vec![leak(format!("003.deadlock.{}", lesson.slug))].leak(),
        title: lesson.title,
        breaks: lesson.breaks,
        cure: lesson.cure,
        anomalies: &[Anomaly::Deadlock],
        begin: &[],
        flaw: half(&[Step::Custom(|play| Box::pin(play_lesson(play, false)))], flaw),
        cured: half(&[Step::Custom(|play| Box::pin(play_lesson(play, true)))], CURED),
    }
}

/// Plays both transactions to their ends, statement by statement or as the person asks, and notes the result. `cured`: with the
/// lesson's cured script or index. A transaction that fails is not begun again.
async fn play_lesson(play: &mut Play, cured: bool) -> Result<(), Error> {
    let Act::Deadlock(lesson) = play.act else {
        return Err(Error::replay("it is no deadlock"));
    };
    for side in Side::BOTH {
        log_event(play, side, "start", "START TRANSACTION … COMMIT");
    }
    let ctx = play.ctx.for_actors_of(play.stock_id);
    let mut two = TwoTransactions::open(&ctx, lesson, cured, true).await?;
    let mut locked = [0; 2];
    if play.options.pace == Pace::Scheduler {
        play_scheduled(play, lesson, cured, &mut two, &mut locked).await?;
        return end_and_note(play, two).await;
    }
    for (side, sql) in lesson.script(cured) {
        if let Some(answered) = two.take_answer(side).await? {
            log_answer(play, &mut locked, &answered);
        }
        if two.has_failed(side) {
            continue;
        }
        play.announce(format!("{side:?}：{sql}"), format!("{side:?}: {sql}")).await?;
        log_event(play, side, "statement", sql);
        match two.send(side, sql).await? {
            Some(answered) => log_answer(play, &mut locked, &answered),
            None => log_event(play, side, "waits", ""),
        }
    }
    end_and_note(play, two).await
}

/// Lets either transaction send its next statement when a person asks for it, until both are at their ends.
async fn play_scheduled(
    play: &Play,
    lesson: &DeadlockLesson,
    cured: bool,
    two: &mut TwoTransactions,
    locked: &mut [u64; 2],
) -> Result<(), Error> {
    let mut left = Side::BOTH.map(|side| {
        let own = lesson.script(cured).filter(move |(whose, _)| *whose == side);
        own.map(|(_, sql)| sql).collect::<VecDeque<_>>()
    });
    for side in Side::BOTH {
        log_next_statement(play, side, two, &mut left);
    }
    let moves = play.options.moves.clone();
    let mut next_move = Box::pin(moves.wait_for_next());
    while Side::BOTH.iter().any(|side| two.has_pending_statement(*side) || !left[*side as usize].is_empty()) {
        // A statement of one may let a pending one of the other be answered.
        for side in Side::BOTH {
            if two.is_answered(side) {
                log_pending_answer(play, side, two, locked, &mut left).await?;
            }
        }
        let Ok(who) = timeout(POLL_INTERVAL, &mut next_move).await else {
            continue;
        };
        next_move = Box::pin(moves.wait_for_next());
        let side = match who? {
            NextMove::A => Side::A,
            NextMove::B => Side::B,
            _ => continue,
        };
        if two.has_pending_statement(side) {
            continue;
        }
        let mut sent = None;
        while let Some(sql) = left[side as usize].pop_front() {
            log_event(play, side, "statement", sql);
            sent = Some((sql, two.send(side, sql).await?));
            if !only_opens_transaction(sql) {
                break;
            }
        }
        let Some((sql, answered)) = sent else {
            continue;
        };
        let Some(answered) = answered else {
            log_event(play, side, "waits", "");
            continue;
        };
        if lesson.long == Some(sql) {
            // This statement lasts longer than the other transaction may wait.
            log_pending_answer(play, side.other(), two, locked, &mut left).await?;
        }
        log_answer(play, locked, &answered);
        log_next_statement(play, side, two, &mut left);
    }
    Ok(())
}

/// Waits for the answer of a pending statement, and logs it and the next statement. Does nothing if none is pending.
async fn log_pending_answer(
    play: &Play,
    side: Side,
    two: &mut TwoTransactions,
    locked: &mut [u64; 2],
    left: &mut [VecDeque<&'static str>; 2],
) -> Result<(), Error> {
    if let Some(answered) = two.take_answer(side).await? {
        log_answer(play, locked, &answered);
        log_next_statement(play, side, two, left);
    }
    Ok(())
}

/// Whether this statement only opens a transaction. It is sent together with the next one, since nothing can happen between.
fn only_opens_transaction(sql: &str) -> bool {
    sql == BEGIN || sql.starts_with("SET TRANSACTION")
}

/// Logs before which statement a transaction stands, or that it is done. If it was rolled back, drops its other statements.
fn log_next_statement(play: &Play, side: Side, two: &TwoTransactions, left: &mut [VecDeque<&'static str>; 2]) {
    let left = &mut left[side as usize];
    if two.has_failed(side) {
        left.clear();
        return log_event(play, side, "failed", "rolled-back");
    }
    match left.iter().find(|sql| !only_opens_transaction(sql)) {
        Some(next) => log_event(play, side, "stands", next),
        None => log_event(play, side, "done", ""),
    }
}

/// Ends both transactions, and notes which error came and how many committed.
async fn end_and_note(play: &mut Play, two: TwoTransactions) -> Result<(), Error> {
    let ended = two.end(false).await?;
    let error = ended.error.map_or_else(String::new, |error| format!("error {error}, "));
    play.add_note(format!("{error}{} committed", ended.committed.len()));
    Ok(())
}

/// Logs the answer of a statement if it is an error, a commit, or more row locks than `locked`, which it updates, has.
fn log_answer(play: &Play, locked: &mut [u64; 2], step: &DeadlockStep) {
    let locked = &mut locked[step.side as usize];
    if let Some(error) = step.error {
        log_event(play, step.side, "conflict", error);
    } else if step.sql == "COMMIT" {
        log_event(play, step.side, "committed", "");
    } else if let Some(rows) = step.row_locks.filter(|rows| rows > locked) {
        *locked = rows;
        log_event(play, step.side, "locked", rows);
    }
}

/// Logs an event of a transaction, on the directing instance; an empty value is left out.
fn log_event(play: &Play, side: Side, event: &str, value: impl Display) {
    let value = Some(value.to_string()).filter(|value| !value.is_empty()).map(Into::into);
    play.log().add(ReplayEvent {
        instance: Some(play.ctx.instance.clone()),
        value,
        ..ReplayEvent::of(format!("{side:?}"), event)
    });
}
