//! [003] Deadlocks in MySQL as races: two transactions, statement by statement, without the cure and with it.
//!
//! 1. A and B are the two transactions of a lesson (`classroom/deadlocks/`), which plays them itself; it is followed here.
//! 2. Each statement waits for the pace. What the server says of it becomes an event: how many rows its transaction has
//!    locked, that it waits, that it was rolled back, that it has committed.
//!
//! What it survives: nothing is lost, with the cure or without. **What breaks it**: nothing; a follower that goes away leaves
//! the play to end by itself.
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
    classroom::deadlocks::{ALL, DEADLOCK, DeadlockLesson, DeadlockSight, Side, replay_followed},
    error::Error,
};
use std::{fmt::Display, sync::LazyLock};
use tokio::sync::mpsc;

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
        lesson: leak(format!("003.deadlock.{}", lesson.slug)),
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
    let (follower, mut sights) = mpsc::unbounded_channel();
    let ctx = play.ctx.clone();
    let mut followed = Followed {
        play,
        locked: [0; 2],
    };
    for side in [Side::A, Side::B] {
        followed.tell(side, "start", "START TRANSACTION … COMMIT");
    }
    let mut playing = Box::pin(replay_followed(&ctx, lesson, cured, follower));
    let ended = loop {
        tokio::select! {
            biased;
            Some(sight) = sights.recv() => followed.see(sight).await?,
            ended = &mut playing => break ended?,
        }
    };
    while let Ok(sight) = sights.try_recv() {
        followed.see(sight).await?;
    }
    let error = ended
        .error
        .map_or_else(String::new, |error| format!("error {error}, "));
    play.note(format!("{error}{} committed", ended.committed.len()));
    Ok(())
}
/// A play, and how many rows each transaction has locked.
struct Followed<'a> {
    play: &'a mut Play,
    locked: [u64; 2],
}

impl Followed<'_> {
    async fn see(&mut self, sight: DeadlockSight) -> Result<(), Error> {
        match sight {
            DeadlockSight::Next { side, sql, go_on } => {
                self.play
                    .step(format!("{side:?}：{sql}"), format!("{side:?}: {sql}"))
                    .await?;
                self.tell(side, "statement", sql);
                // Where nobody waits for it any more, the play has ended.
                go_on.send(()).ok();
            }
            DeadlockSight::Waits(side) => self.tell(side, "waits", ""),
            DeadlockSight::Answered(step) => {
                if let Some(error) = step.error {
                    self.tell(step.side, "conflict", error);
                } else if step.sql == "COMMIT" {
                    self.tell(step.side, "committed", "");
                } else if let Some(rows) = step
                    .row_locks
                    .filter(|rows| *rows > self.locked[step.side as usize])
                {
                    self.locked[step.side as usize] = rows;
                    self.tell(step.side, "locked", rows);
                }
            }
        }
        Ok(())
    }

    fn tell(&self, side: Side, event: &str, value: impl Display) {
        let value = Some(value.to_string())
            .filter(|value| !value.is_empty())
            .map(Into::into);
        let (actor, instance) = (format!("{side:?}"), Some(self.play.ctx.instance.clone()));
        self.play.log().add(ReplayEvent {
            actor,
            instance,
            event: event.to_owned(),
            value,
            ..ReplayEvent::default()
        });
    }
}
