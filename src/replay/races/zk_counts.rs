//! §3.7.7 Two add one to a number that all instances share.
//!
//! 1. A reads 0, and has not set it yet. B reads 0 too, and sets 1.
//! 2. A sets 1: two have added, and the number is 1. `SharedCount.setCount` does not look.
//!
//! On its cure, `trySetCount`, the number is set only where its version is the one that was read: A is refused, reads again,
//! and sets 2. The atomic long does the same by itself.
//!
//! Points: `read`, `conflict`, `written`.
//!
//! Next: `promoted_replica.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Name, Point},
};

const COUNT: &str = "/curator/count";
const NAMES: &[Name] = &[Name::ZooKeeper(COUNT)];

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: "zk-set-count",
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(set(ctx, job)),
    },
    Act {
        name: "zk-try-set-count",
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(try_set(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.7.7",
    title: Bilingual {
        zh: "两个人给共享计数器各加一",
        en: "Two add one to a shared count",
    },
    breaks: Bilingual {
        zh: "setCount 不看别人改过没有",
        en: "setCount does not look whether another has set it",
    },
    cure: Bilingual {
        zh: "trySetCount：版本没变才写，否则重来",
        en: "trySetCount: only where the version is as it was read",
    },
    runs: ["zk-set-count", "zk-try-set-count"],
    ends: [
        Ends::saw("1", "最后的计数是 1", "the count is 1 at the end"),
        Ends::saw("2", "最后的计数是 2", "the count is 2 at the end"),
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step("A 读到 0", "A reads 0").await?;
    let mut a = play.side_at(Point::Read, 'A', 2, act, None).await?;
    play.step("B 也读到 0，写 1", "B reads 0 too, and sets 1")
        .await?;
    play.side(&[], 'B', 1, act, None).await?.ends().await?;
    if play.cured {
        play.step(
            "A 写 1 被拒绝：版本变了；再读，写 2",
            "A's 1 is refused: the version has changed; it reads, and sets 2",
        )
        .await?;
    } else {
        play.step(
            "A 也写 1：加了两次，还是 1",
            "A sets 1 too: two have added, and it is 1",
        )
        .await?;
    }
    a.ends().await?;
    let written = play
        .log()
        .since(0)
        .into_iter()
        .rev()
        .find(|event| event.event == "written");
    play.saw = written
        .and_then(|event| Some(event.value?.as_str()?.to_owned()))
        .unwrap_or_default();
    Ok(())
}

async fn set(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let count = ctx.zk.shared_count(&job.zk_path(COUNT), 0);
    let read = count.get().await?.value;
    job.tell(Point::Read, read).await;
    job.tell(Point::Written, count.set(read + 1).await?.value)
        .await;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}

async fn try_set(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let count = ctx.zk.shared_count(&job.zk_path(COUNT), 0);
    let mut retries = 0;
    loop {
        let seen = count.get().await?;
        job.tell(Point::Read, seen.value).await;
        if let Ok(set) = count.try_set(seen, seen.value + 1).await? {
            job.tell(Point::Written, set.value).await;
            return Ok(Deducted {
                remaining: None,
                fence: None,
                retries,
                lock: None,
            });
        }
        job.at(Point::Conflict).await;
        retries += 1;
    }
}
