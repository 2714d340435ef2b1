//! [004] demo2 takes the lock by force after its safety time, from one who is at work.
//!
//! 1. A has the lock, well within its lease, and works.
//! 2. B has waited for five of its leases, writes its own value into the key, and works too: two are inside.
//! 3. A finds another's value in the key: its lock is lost.
//!
//! On its cure, the library's lock, nobody takes what another has: B waits until A gives it back. A holder that dies is its
//! lease's business.
//!
//! What it survives: with the library's lock, a holder that dies. **What breaks it**: a holder that is paused beyond its lease.
//!
//! Next: `oversell_lock::redis`.

use crate::bilingual::Bilingual;
use crate::{
    classroom::{
        demo_layer,
        demo2::{self, Id},
    },
    ctx::Ctx,
    error::Error,
    replay::{
        Ends, Line, Replay,
        acts::Act,
        play::{Pace, Play},
    },
    section::{Deducted, Job, LockState, Name, Point},
};
use oversell_lock::{Lock, LockError};

pub(super) const REPLAY: Replay = Replay {
    lesson: "004.force",
    title: Bilingual {
        zh: "等久了就强行拿锁",
        en: "Who has waited long takes the lock by force",
    },
    breaks: Bilingual {
        zh: "被强占的人还在干活",
        en: "the one whom it is taken from is still at work",
    },
    cure: Bilingual {
        zh: "不强占：持有者死了，租约会到期",
        en: "no force: where a holder is dead, its lease ends",
    },
    runs: [ACTS[0].name, ACTS[1].name],
    ends: [
        Ends {
            inside: 2,
            ..Ends::saw("A has lost its lock", "A 的锁丢了", "A has lost its lock")
        },
        Ends {
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

const LIBRARY: &str = "demo2Library";

/// The lock of demo2, and the library's in its place.
pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: "demo2",
        names: demo2::NAMES,
        store: None,
        run: |ctx, job| Box::pin(forced(ctx, job)),
    },
    Act {
        name: "library-lock",
        names: &[Name::Redis(LIBRARY)],
        store: None,
        run: |ctx, job| Box::pin(library(ctx, job)),
    },
];

async fn forced(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    demo2::visit(ctx, job, Id::Uuid).await.map(visited)
}

async fn library(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    job.at(Point::Waits).await;
    let guard = demo_layer::lock(ctx, job, LIBRARY)
        .acquire(job.wait_left())
        .await?;
    job.at(Point::Locked).await;
    job.at(Point::Worked).await;
    job.at(Point::Leaves).await;
    match guard.release().await {
        Ok(()) => Ok(visited(Some(LockState::Kept))),
        Err(LockError::Lost { .. }) => Ok(visited(Some(LockState::Lost))),
        Err(error) => Err(error.into()),
    }
}

fn visited(lock: Option<LockState>) -> Deducted {
    Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock,
    }
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    // The text's lease is 10 s and its safety time 50 s; B's are shorter, so that a class need not wait so long.
    let shorter = Some(if play.pace == Pace::Fast { 100 } else { 1000 });
    play.step(
        "A 拿到锁，在干活，租约还早",
        "A has the lock and works; its lease is far from its end",
    )
    .await?;
    let mut a = play
        .side_at(Point::Worked, 'A', 0, act, Some(600_000))
        .await?;
    if play.cured {
        play.step("B 等", "B waits").await?;
        let mut b = play.side_at(Point::Waits, 'B', 1, act, None).await?;
        b.heads_for(Point::Worked);
        play.step("A 干完，放锁", "A is done, and releases").await?;
        a.to(Point::Leaves).await?;
        a.ends().await?;
        play.step("B 才进来", "B gets in after it").await?;
        b.at(Point::Worked).await?;
        return b.ends().await.map(drop);
    }
    play.step(
        "B 等了五个租约，强行写上自己的值",
        "B has waited for five leases, and writes its own value by force",
    )
    .await?;
    let mut b = play.side_at(Point::Worked, 'B', 1, act, shorter).await?;
    play.step(
        "两个都在里面；A 干完，锁已经不是它的了",
        "both are inside; A is done, and its lock is no longer its own",
    )
    .await?;
    if let Line::Done {
        lost: Some(true), ..
    } = a.ends().await?
    {
        play.saw = "A has lost its lock".to_owned();
    }
    b.ends().await.map(drop)
}
