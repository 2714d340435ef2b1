//! §3.7.6 Three begin together, or each when it comes.
//!
//! 1. Without a barrier A begins, and is through, before C has come.
//!
//! On its cure, a double barrier for three, A and B wait at the entrance until C comes: all three begin at once; and who is
//! through waits at the exit for the others.
//!
//! Points: `locked` (inside), `written` (through).
//!
//! Next: `zk_counts.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Name, Point},
};
use std::num::NonZeroU32;

const ROOM: &str = "/curator/double-barrier";
const MEMBERS: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: "no-barrier",
        names: &[],
        store: None,
        run: |_, job| Box::pin(work(job)),
    },
    Act {
        name: "zk-double-barrier",
        names: &[Name::ZooKeeper(ROOM)],
        store: None,
        run: |ctx, job| Box::pin(together(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.7.6",
    title: Bilingual {
        zh: "三个一起开始",
        en: "Three begin together",
    },
    breaks: Bilingual {
        zh: "没有栅栏：先来的先做完，谁也不等谁",
        en: "no barrier: who comes first is through first",
    },
    cure: Bilingual {
        zh: "双栅栏：到齐了才开始，都做完才离开",
        en: "a double barrier: all begin, and leave, together",
    },
    runs: ["no-barrier", "zk-double-barrier"],
    ends: [
        Ends {
            inside: 1,
            ..Ends::NOTHING
        },
        Ends {
            inside: 3,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if !play.cured {
        for (n, letter) in ['A', 'B', 'C'].into_iter().enumerate() {
            play.step(
                format!("{letter} 来了就做，做完就走"),
                format!("{letter} comes, works, and is through"),
            )
            .await?;
            play.side(&[], letter, 2 - n, act, None)
                .await?
                .ends()
                .await?;
        }
        return Ok(());
    }
    play.step("A 来了，在栅栏前等", "A comes, and waits at the barrier")
        .await?;
    let mut a = play.side(&[Point::Locked], 'A', 2, act, None).await?;
    play.step("B 也来了，还差一个", "B comes too: one is missing")
        .await?;
    let mut b = play.side(&[Point::Locked], 'B', 1, act, None).await?;
    play.step(
        "C 来了：到齐了，三个同时开始",
        "C comes: all are there, and the three begin at once",
    )
    .await?;
    let mut c = play.side(&[Point::Locked], 'C', 0, act, None).await?;
    for side in [&mut a, &mut b, &mut c] {
        side.at(Point::Locked).await?;
    }
    play.step(
        "做完的在出口等，都做完才一起离开",
        "who is through waits at the exit, and all leave together",
    )
    .await?;
    let (a, b, c) = tokio::join!(a.ends(), b.ends(), c.ends());
    a.and(b).and(c).map(drop)
}

async fn work(job: &Job) -> Result<Deducted, Error> {
    job.at(Point::Locked).await;
    job.at(Point::Written).await;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}

async fn together(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let room = ctx.zk.double_barrier(&job.zk_path(ROOM), MEMBERS);
    let member = room.enter(job.wait_left()).await?;
    let done = work(job).await;
    room.leave(&member, job.wait_left()).await?;
    done
}
