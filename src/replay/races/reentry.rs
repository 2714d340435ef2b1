//! §2.6 Who has the lock needs it again: `a()` takes it, and calls `b()`, which takes it too.
//!
//! 1. A takes the lock of §2.5, and is inside.
//! 2. From within, A takes it again: the key is there. A waits for A, until its wait is over.
//!
//! On its cure the key is a hash that counts its owner's holds: 1, 2, 1, and free with the last.
//!
//! Next: `long_job.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{
        Ends, Replay,
        actor::Line,
        acts::Act,
        play::{Pace, Play, gone_wrong},
    },
    section::{Deducted, Job, Name, Point, redis_polling as stage},
    stock::{Scripted, Store},
};
use std::time::Duration;

const FLAWED: &str = "redis-setnx-lua-twice";

pub(in crate::replay) const ACTS: &[Act] = &[Act {
    name: FLAWED,
    names: &[Name::Redis("lock:redis-setnx-lua")],
    store: Some(Store::Redis),
    run: |ctx, job| Box::pin(a(ctx, job)),
}];

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.6",
    title: Bilingual {
        zh: "拿着锁的人还要这把锁",
        en: "Who has the lock needs it again",
    },
    breaks: Bilingual {
        zh: "SETNX 不认得自己的主人：自己等自己",
        en: "SETNX does not know its owner, who waits for itself",
    },
    cure: Bilingual {
        zh: "Hash 记下是谁的、进了几次",
        en: "a hash says whose it is, and how often",
    },
    runs: [FLAWED, "redis-reentrant"],
    ends: [
        Ends {
            inside: 1,
            ..Ends::saw("A waits for A", "A 等自己", "A waits for itself")
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 1,
            ..Ends::saw("1 2 1 0", "重入次数 1 2 1 0", "holds: 1 2 1 0")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

/// The course's `a()`, under the lock of §2.5.
async fn a(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let held = stage::lock(ctx, job, Scripted::new(ctx, job)).await?;
    job.at(Point::Locked).await;
    stage::under(held, b(ctx, job)).await
}

/// The course's `b()`, under the same lock.
async fn b(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let held = stage::lock(ctx, job, Scripted::new(ctx, job)).await?;
    stage::under(held, stage::read_then_write(ctx, job)).await
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if act == FLAWED {
        play.step(
            "a()：A 拿到锁，进来了",
            "a(): A takes the lock, and is inside",
        )
        .await?;
        // Shorter than the lease.
        let wait = Duration::from_millis(if play.pace == Pace::Slow { 2000 } else { 200 });
        let mut a = play
            .side_that_waits(wait, &[Point::Locked], 'A', 0, act, play.lease(10_000))
            .await?;
        a.at(Point::Locked).await?;
        play.step(
            "b()：A 再拿同一把锁，键已经在了",
            "b(): A takes the same lock again, and the key is there",
        )
        .await?;
        a.to(Point::Refused).await?;
        play.step("A 在等 A 自己", "A waits for itself").await?;
        let end = a.ends().await?;
        let waited = matches!(&end, Line::Failed { kind, .. } if kind == "not-had");
        play.saw = waited
            .then(|| "A waits for A".to_owned())
            .ok_or_else(|| gone_wrong(format!("A: {end:?}")))?;
        return Ok(());
    }
    play.step(
        "a()：A 拿到锁，计数 1",
        "a(): A takes the lock, the count is 1",
    )
    .await?;
    let mut a = play
        .side_at(Point::Taken, 'A', 0, act, play.lease(10_000))
        .await?;
    let mut counts = vec![play.holds().await?];
    play.step(
        "b()：A 再拿一次，计数 2",
        "b(): A takes it again, the count is 2",
    )
    .await?;
    a.to(Point::Locked).await?;
    counts.push(play.holds().await?);
    play.step(
        "b() 写完，还一次，计数 1",
        "b() writes and leaves, the count is 1",
    )
    .await?;
    a.to(Point::Unlocked).await?;
    counts.push(play.holds().await?);
    play.step(
        "a() 也还：计数到 0，锁才放开",
        "a() leaves too: at 0 the lock is free",
    )
    .await?;
    a.ends().await?;
    counts.push(play.holds().await?);
    play.saw = counts
        .iter()
        .map(i64::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    Ok(())
}
