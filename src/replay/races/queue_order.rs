//! §2.10.2 Who has waited longest comes next, or who tries at the right moment.
//!
//! 1. A has the lock. B waits: it tries again every now and then.
//! 2. A releases while B is between two tries. C comes only now, tries at once, and gets in.
//! 3. B, who has waited longer, comes last: A, C, B.
//!
//! On its cure those who wait stand in a queue in Redis, and who comes later stands behind: A, B, C.
//!
//! Next: `read_write.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

const FLAWED: &str = "redis-watchdog";

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.10.2",
    title: Bilingual {
        zh: "后来的先进去",
        en: "Who comes later gets in first",
    },
    breaks: Bilingual {
        zh: "不公平：碰巧在放锁后第一个来试的人进去",
        en: "not fair: the first to try after a release gets in",
    },
    cure: Bilingual {
        zh: "公平锁：在 Redis 里排队",
        en: "the fair lock: a queue in Redis",
    },
    runs: [FLAWED, "redis-fair"],
    ends: [
        Ends {
            sold: 3,
            gone: 3,
            inside: 1,
            ..Ends::saw(
                "A C B",
                "进去的顺序：A C B",
                "they got in in the order A C B",
            )
        },
        Ends {
            sold: 3,
            gone: 3,
            inside: 1,
            ..Ends::saw(
                "A B C",
                "进去的顺序：A B C",
                "they got in in the order A B C",
            )
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let lease = play.lease(20_000);
    play.step("A 拿到锁", "A has the lock").await?;
    let mut a = play.side_at(Point::Read, 'A', 0, act, lease).await?;
    if act == FLAWED {
        play.step("B 在等：试一次，歇一会儿", "B waits: it tries, and rests")
            .await?;
        let mut b = play.side_at(Point::Refused, 'B', 1, act, lease).await?;
        play.step("B 还在歇，A 放锁了", "B is at rest, and A releases")
            .await?;
        a.ends().await?;
        play.step(
            "C 这时才来，一试就拿到",
            "C comes only now, and has it at once",
        )
        .await?;
        let mut c = play.side_at(Point::Read, 'C', 2, act, lease).await?;
        c.ends().await?;
        play.step(
            "等得更久的 B 最后才进去",
            "B, who has waited longer, comes last",
        )
        .await?;
        b.ends().await?;
    } else {
        play.step("B 来排队", "B queues").await?;
        let mut b = play.side(&[Point::Read], 'B', 1, act, lease).await?;
        play.queued(1).await?;
        play.step("C 来排队，站在 B 后面", "C queues, behind B")
            .await?;
        let mut c = play.side(&[Point::Read], 'C', 2, act, lease).await?;
        play.queued(2).await?;
        play.step(
            "A 放锁：叫醒的只是排在最前的 B",
            "A releases: only B, the first, is woken",
        )
        .await?;
        a.ends().await?;
        b.at(Point::Read).await?;
        play.step("B 放锁，轮到 C", "B releases, and it is C's turn")
            .await?;
        b.ends().await?;
        c.at(Point::Read).await?;
        c.ends().await?;
    }
    play.saw = play.stage.order();
    Ok(())
}
