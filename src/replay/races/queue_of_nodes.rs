//! §3.3 → §3.4.2 Who came first gets in first, or who happens to ask at the right moment.
//!
//! 1. A has the lock. B has asked, was refused, and sleeps until it asks again.
//! 2. A gives the lock back. C comes, asks, and gets in before B.
//!
//! On its cure each has a numbered node, and waits for the one before its own: A, B, C.
//!
//! Next: `zk_read_write.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.4.2",
    title: Bilingual {
        zh: "先来的先进",
        en: "First come, first served",
    },
    breaks: Bilingual {
        zh: "大家反复抢：后来的可能先进",
        en: "all ask again and again: who came last may get in first",
    },
    cure: Bilingual {
        zh: "顺序节点排队，只盯前一个",
        en: "a queue of numbered nodes, each watches the one before",
    },
    runs: ["zk-ephemeral", "zk-lock"],
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
    play.step("A 拿到锁", "A has the lock").await?;
    let mut a = play.side_at(Point::Read, 'A', 2, act, None).await?;
    if act == "zk-ephemeral" {
        play.step(
            "B 来了，没拿到，睡一会儿再试",
            "B comes, is refused, and sleeps before it asks again",
        )
        .await?;
        let mut b = play.side_at(Point::Refused, 'B', 1, act, None).await?;
        play.step("A 放锁，B 还在睡", "A releases, and B still sleeps")
            .await?;
        a.ends().await?;
        play.step("C 刚来，一试就进去了", "C has just come, asks, and gets in")
            .await?;
        play.side(&[], 'C', 0, act, None).await?.ends().await?;
        play.step("然后才是 B", "and then B").await?;
        b.ends().await?;
    } else {
        play.step(
            "B 来了：节点排在 A 后面，只盯 A 的节点",
            "B comes: its node is behind A's, which it watches",
        )
        .await?;
        let mut b = play.side(&[Point::Read], 'B', 1, act, None).await?;
        play.queued(1).await?;
        play.step(
            "C 来了：排在 B 后面，只盯 B 的节点",
            "C comes: its node is behind B's, which it watches",
        )
        .await?;
        let mut c = play.side(&[Point::Read], 'C', 0, act, None).await?;
        play.queued(2).await?;
        play.step("A 放锁，叫醒 B", "A releases, which wakes B")
            .await?;
        a.ends().await?;
        b.at(Point::Read).await?;
        play.step("B 放锁，叫醒 C", "B releases, which wakes C")
            .await?;
        b.ends().await?;
        c.at(Point::Read).await?;
        c.ends().await?;
    }
    play.saw = play.stage.order();
    Ok(())
}
