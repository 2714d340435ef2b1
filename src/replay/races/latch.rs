//! §2.10.7 The monitor locks the door when all of the class are out.
//!
//! 1. A, the monitor, comes to the door and locks it. B and C are still in.
//!
//! On its cure A waits for a latch that each who goes out counts down: the door is locked when B and C are out. The class
//! has two here, so that three actors are enough to see it (the course's has six).
//!
//! Next: `read_then_write.rs`, the first of all.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Name, Point},
};
use std::num::NonZeroU32;

const FLAWED: &str = "lock-the-door-at-once";
const CURED: &str = "lock-the-door-after-all";
const GO_OUT: &str = "go-out";
const LATCH: &str = "latch";
const NAMES: &[Name] = &[Name::RedisCount(LATCH)];
const CLASS: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: FLAWED,
        names: NAMES,
        store: None,
        run: |_, job| Box::pin(at_once(job)),
    },
    Act {
        name: CURED,
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(after_all(ctx, job)),
    },
    Act {
        name: GO_OUT,
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(go_out(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.10.7",
    title: Bilingual {
        zh: "班长锁门",
        en: "The monitor locks the door",
    },
    breaks: Bilingual {
        zh: "不等人：门锁上时，B 和 C 还在里面",
        en: "nobody is waited for: B and C are still in",
    },
    cure: Bilingual {
        zh: "闭锁：计数到 0 才锁门（这里是 2 个人）",
        en: "a latch: the door is locked at 0 (two people here)",
    },
    runs: [FLAWED, CURED],
    ends: [
        Ends::saw(
            "door out out",
            "班长锁门，出来一位，出来一位",
            "the door is locked, one goes out, one goes out",
        ),
        Ends::saw(
            "out out door",
            "出来一位，出来一位，班长锁门",
            "one goes out, one goes out, the door is locked",
        ),
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn at_once(job: &Job) -> Result<Deducted, Error> {
    job.at(Point::Door).await;
    done()
}

async fn after_all(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let latch = ctx.redis.latch(&job.redis_name(LATCH));
    latch.try_set_count(CLASS).await?;
    job.at(Point::Waits).await;
    latch.wait(job.wait_left()).await?;
    job.at(Point::Door).await;
    done()
}

async fn go_out(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let left = ctx.redis.latch(&job.redis_name(LATCH)).count_down().await?;
    job.tell(
        Point::Out,
        left.map_or_else(|| "-".to_owned(), |left| left.to_string()),
    )
    .await;
    done()
}

const fn done() -> Result<Deducted, Error> {
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let mut a = play
        .side(&[Point::Waits, Point::Door], 'A', 0, act, None)
        .await?;
    let at_once = a.at_one_of(&[Point::Waits, Point::Door]).await? == Point::Door;
    let mut saw = Vec::new();
    if at_once {
        play.step(
            "班长 A 来了就锁门：B 和 C 还在里面",
            "A, the monitor, locks the door: B and C are still in",
        )
        .await?;
        a.ends().await?;
        saw.push("door");
    } else {
        play.step(
            "班长 A 等大家出来：还有 2 位",
            "A, the monitor, waits for all: two are in",
        )
        .await?;
        a.heads_for(Point::Door);
    }
    for (letter, zh) in [('B', "B 出来了"), ('C', "C 出来了")] {
        play.step(zh, format!("{letter} goes out")).await?;
        play.side(&[], letter, 1, GO_OUT, None)
            .await?
            .ends()
            .await?;
        saw.push("out");
    }
    if !at_once {
        a.at(Point::Door).await?;
        play.step("都出来了：A 锁门", "all are out: A locks the door")
            .await?;
        a.ends().await?;
        saw.push("door");
    }
    play.saw = saw.join(" ");
    Ok(())
}
