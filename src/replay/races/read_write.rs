//! §2.10.5 Two come one after the other: both read, one reads and one writes, both write.
//!
//! 1. A takes its half of the lock, and is inside. B tries its own half: it gets in beside A, or is refused and waits.
//! 2. A releases; B ends. Four times: RR, RW, WR, WW.
//!
//! With one plain lock for all, readers wait for each other, though none of them changes anything. On its cure only they
//! go together: who writes is alone.
//!
//! Next: `permits.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, LockState, Name, Point},
};
use oversell_lock::{Lock, LockError};

const PLAIN: [&str; 2] = ["plain-read", "plain-write"];
const HALVES: [&str; 2] = ["rw-read", "rw-write"];
const PLAIN_NAMES: &[Name] = &[Name::Redis("lock")];
const NAMES: &[Name] = &[Name::Redis("rwLock")];

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: PLAIN[0],
        names: PLAIN_NAMES,
        store: None,
        run: |ctx, job| Box::pin(plain(ctx, job)),
    },
    Act {
        name: PLAIN[1],
        names: PLAIN_NAMES,
        store: None,
        run: |ctx, job| Box::pin(plain(ctx, job)),
    },
    Act {
        name: HALVES[0],
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(read(ctx, job)),
    },
    Act {
        name: HALVES[1],
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(write(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.10.5",
    title: Bilingual {
        zh: "读读、读写、写读、写写",
        en: "Read and read, read and write, write and read, write and write",
    },
    breaks: Bilingual {
        zh: "只有一把普通的锁：读的人也要互相等",
        en: "with one plain lock readers wait for each other",
    },
    cure: Bilingual {
        zh: "读写锁：读读一起，有写就等",
        en: "a read-write lock: readers together, writers alone",
    },
    runs: [PLAIN[0], HALVES[0]],
    ends: [
        Ends {
            inside: 1,
            ..Ends::saw(
                "RR waits, RW waits, WR waits, WW waits",
                "读后读、读后写、写后读、写后写：都要等",
                "whoever comes second waits, a reader behind a reader as well",
            )
        },
        Ends {
            inside: 2,
            ..Ends::saw(
                "RR together, RW waits, WR waits, WW waits",
                "读后读：一起；读后写、写后读、写后写：等",
                "two readers are inside together; beside a writer the second one waits",
            )
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn plain(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    visit(
        job,
        ctx.redis
            .lock(&job.redis_name("lock"))
            .lease(job.watchdog(ctx)),
    )
    .await
}

async fn read(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    visit(
        job,
        ctx.redis
            .rw_lock(&job.redis_name("rwLock"))
            .read()
            .lease(job.watchdog(ctx)),
    )
    .await
}

async fn write(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    visit(
        job,
        ctx.redis
            .rw_lock(&job.redis_name("rwLock"))
            .write()
            .lease(job.watchdog(ctx)),
    )
    .await
}

/// Takes the lock, after it was seen whether that takes a wait, and gives it back.
async fn visit(job: &Job, lock: impl Lock) -> Result<Deducted, Error> {
    let guard = match lock.try_acquire().await {
        Err(LockError::Taken { .. }) => {
            job.at(Point::Refused).await;
            lock.acquire(job.wait_left()).await?
        }
        tried => tried?,
    };
    job.at(Point::Locked).await;
    job.at(Point::Left).await;
    guard.release().await?;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: Some(LockState::Kept),
    })
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let acts = if act == PLAIN[0] { PLAIN } else { HALVES };
    let does = |half| [("R", "读", "reads"), ("W", "写", "writes")][half];
    let mut saw = Vec::new();
    for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let ((one, zh, en), (other, then_zh, then_en)) = (does(first), does(second));
        play.step(
            format!("A 在里面{zh}；B 也来{then_zh}"),
            format!("A {en}; B comes, and {then_en}"),
        )
        .await?;
        let mut a = play
            .side_at(Point::Locked, 'A', 0, acts[first], play.lease(10_000))
            .await?;
        let mut b = play
            .side(
                &[Point::Locked, Point::Refused],
                'B',
                1,
                acts[second],
                play.lease(10_000),
            )
            .await?;
        let together = b.at_one_of(&[Point::Locked, Point::Refused]).await? == Point::Locked;
        if together {
            play.step("两个一起在里面", "both are inside together")
                .await?;
        } else {
            play.step("B 等 A 放锁", "B waits until A releases").await?;
            b.heads_for(Point::Locked);
        }
        a.ends().await?;
        b.at(Point::Locked).await?;
        b.ends().await?;
        saw.push(format!(
            "{one}{other} {}",
            if together { "together" } else { "waits" }
        ));
    }
    play.saw = saw.join(", ");
    Ok(())
}
