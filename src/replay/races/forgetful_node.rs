//! [003] A node of Redlock comes back without its data.
//!
//! 1. A does not reach two of the five nodes, and has the lock on the other three.
//! 2. One of these dies, and comes back empty. B gets that one and the two: most of five. Both are inside.
//!
//! On its cure the node stays away until what it knew has ended (a delayed restart): B gets two nodes, which is no lock, and C
//! gets in after A.
//!
//! Next: `jumping_clock.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    orders::Action,
    replay::{
        Ends, Replay,
        faults::Need,
        play::{Play, Side},
    },
};

const NEEDS: &[Need] = &[Need::Orders, Need::Ways, Need::Nodes];

pub(super) const REPLAY: Replay = Replay {
    lesson: "003.redlock.restart",
    title: Bilingual {
        zh: "红锁的一个节点丢了数据重启",
        en: "A node of Redlock forgets",
    },
    breaks: Bilingual {
        zh: "重启的节点不记得 A 的锁",
        en: "the node that came back does not know A's lock",
    },
    cure: Bilingual {
        zh: "延迟重启：等旧锁都过期再回来",
        en: "a delayed restart: after what it knew has ended",
    },
    runs: ["redis-redlock", "redis-redlock"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 2,
            gone: 2,
            inside: 1,
            ..Ends::saw("B refused", "B 被拒绝", "B is refused")
        },
    ],
    needs: NEEDS,
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let mut a = on_three(play, act).await?;
    play.step("redis-3 死了", "redis-3 dies").await?;
    play.faults.order(Action::Kill, "redis-3").await?;
    if !play.cured {
        play.step(
            "马上重启：它什么也不记得",
            "it is started again at once, and knows nothing",
        )
        .await?;
        play.faults.order(Action::Start, "redis-3").await?;
        play.step(
            "B 拿到 redis-3 4 5：也是多数",
            "B gets redis-3, 4 and 5: most of five as well",
        )
        .await?;
        let mut b = play
            .side_at(Point::Read, 'B', 1, act, play.lease(30_000))
            .await?;
        play.step("A 写，B 也写", "A writes, and so does B").await?;
        a.ends().await?;
        return b.ends().await.map(drop);
    }
    play.step(
        "不急着重启：B 只拿到两个",
        "it is not started yet: B gets two",
    )
    .await?;
    play.is_refused('B', 1, act).await?;
    play.step(
        "A 写完，放锁；redis-3 这时才回来",
        "A writes, and releases; now redis-3 comes back",
    )
    .await?;
    a.ends().await?;
    play.faults.order(Action::Start, "redis-3").await?;
    play.step("C 进来", "C gets in").await?;
    play.side(&[], 'C', 0, act, play.lease(30_000))
        .await?
        .ends()
        .await
        .map(drop)
}

/// A has the lock on the first three nodes, and has read; its instance does not reach the other two.
pub(super) async fn on_three(play: &Play, act: &str) -> Result<Side, Error> {
    const A: usize = 2;
    play.step(
        "A 的网络不好：连不上 redis-4 和 redis-5",
        "A's network is bad: it does not reach redis-4 and redis-5",
    )
    .await?;
    for node in ["redis-4", "redis-5"] {
        play.faults
            .order(Action::Cut, &format!("{}-{node}", play.name_of(A)?))
            .await?;
    }
    play.step(
        "A 在 redis 1 2 3 上拿到锁，读库存",
        "A has the lock on redis 1, 2 and 3, and reads",
    )
    .await?;
    play.side_at(Point::Read, 'A', A, act, play.lease(30_000))
        .await
}
