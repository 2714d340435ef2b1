//! §2.10.6 Three come to a room for two.
//!
//! 1. A and B come in, and stay.
//! 2. C comes: nothing keeps it out, and three are inside.
//!
//! On its cure they take permits from a semaphore. It has two here, so that three actors are enough to see it (the course
//! has three, and ten requests): C waits until A leaves.
//!
//! Next: `latch.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Name, Point},
};
use oversell_lock::LockError;

const FLAWED: &str = "come-in";
const CURED: &str = "take-a-permit";
const SEMAPHORE: &str = "semaphore";
const NAMES: &[Name] = &[Name::RedisCount(SEMAPHORE)];
const PERMITS: u32 = 2;

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: FLAWED,
        names: NAMES,
        store: None,
        run: |_, job| Box::pin(come_in(job)),
    },
    Act {
        name: CURED,
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(take_a_permit(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.10.6",
    title: Bilingual {
        zh: "两个名额，来了三个",
        en: "Two permits, and three who come",
    },
    breaks: Bilingual {
        zh: "没有信号量：来多少进多少",
        en: "without a semaphore all who come are inside",
    },
    cure: Bilingual {
        zh: "信号量：先拿许可再进（这里是 2 个）",
        en: "a semaphore: no entry without a permit (2 here)",
    },
    runs: [FLAWED, CURED],
    ends: [
        Ends {
            inside: 3,
            ..Ends::NOTHING
        },
        Ends {
            inside: 2,
            ..Ends::saw("C waits", "C 在等", "C waits")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn come_in(job: &Job) -> Result<Deducted, Error> {
    job.at(Point::Locked).await;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}

async fn take_a_permit(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let semaphore = ctx
        .redis
        .semaphore(&job.redis_name(SEMAPHORE))
        .initially(PERMITS);
    let permit = match semaphore.try_acquire(1).await {
        Err(LockError::Taken { .. }) => {
            job.at(Point::Refused).await;
            semaphore.acquire(1, job.wait_left()).await?
        }
        tried => tried?,
    };
    job.at(Point::Locked).await;
    job.at(Point::Left).await;
    permit.release().await?;
    job.at(Point::Released).await;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step("A 进来", "A comes in").await?;
    let mut a = play.side_at(Point::Locked, 'A', 0, act, None).await?;
    play.step("B 进来", "B comes in").await?;
    let mut b = play.side_at(Point::Locked, 'B', 1, act, None).await?;
    play.step("C 也来了", "C comes too").await?;
    let mut c = play
        .side(&[Point::Locked, Point::Refused], 'C', 2, act, None)
        .await?;
    if c.at_one_of(&[Point::Locked, Point::Refused]).await? == Point::Refused {
        "C waits".clone_into(&mut play.saw);
        play.step("许可发完了：C 在等", "no permit is left: C waits")
            .await?;
        c.heads_for(Point::Locked);
        play.step(
            "A 走了，还了许可：C 进来",
            "A leaves and gives its permit back: C comes in",
        )
        .await?;
        a.ends().await?;
        c.at(Point::Locked).await?;
    } else {
        play.step("三个人同时在里面", "three are inside at once")
            .await?;
        a.ends().await?;
    }
    b.ends().await?;
    c.ends().await.map(drop)
}
