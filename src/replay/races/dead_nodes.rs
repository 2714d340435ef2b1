//! §2.10.4 How many of Redlock's nodes may be dead?
//!
//! 1. Three of five are dead: two are left, no majority. A does not get in.
//!
//! Where two are dead, three are left: A gets in, sells, and releases.
//!
//! Next: `node_types.rs`.

use crate::bilingual::Bilingual;
use crate::{
    error::Error,
    orders::Action,
    replay::{Ends, Replay, faults::Need, play::Play},
};

const NEEDS: &[Need] = &[Need::Orders, Need::Nodes];

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.10.4",
    title: Bilingual {
        zh: "红锁的节点死了几个",
        en: "How many of Redlock's nodes are dead",
    },
    breaks: Bilingual {
        zh: "五个死三个：凑不成多数，谁也拿不到",
        en: "three of five: no majority, and nobody gets in",
    },
    cure: Bilingual {
        zh: "只死两个：三个就够",
        en: "only two: three are enough",
    },
    runs: ["redis-redlock", "redis-redlock"],
    ends: [
        Ends::saw("A refused", "A 被拒绝", "A is refused"),
        Ends {
            sold: 1,
            gone: 1,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: NEEDS,
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let dead = if play.cured {
        &["redis-5", "redis-4"][..]
    } else {
        &["redis-5", "redis-4", "redis-3"]
    };
    let all = dead.join(" ");
    play.step(format!("杀掉 {all}"), format!("{all} are killed"))
        .await?;
    for node in dead {
        play.faults.order(Action::Kill, node).await?;
    }
    if play.cured {
        play.step(
            "A 在剩下的三个上拿到锁",
            "A has the lock on the three that are left",
        )
        .await?;
        return play
            .side(&[], 'A', 1, act, play.lease(10_000))
            .await?
            .ends()
            .await
            .map(drop);
    }
    play.step(
        "A 只问得到两个：拿不到",
        "only two answer A: it does not get in",
    )
    .await?;
    play.is_refused('A', 1, act).await
}
