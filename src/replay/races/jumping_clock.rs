//! [003] The clock of one of Redlock's nodes jumps forward.
//!
//! 1. A does not reach two of the five nodes, and has the lock on the other three.
//! 2. The clock of one of these jumps: A's key ends there, long before its time. B gets that one and the two.
//!
//! On its cure the row looks at a fencing token: whatever a clock does to the lock, A's older token is refused.
//!
//! **What it cannot do**: set a clock. The node's key is ended early, which is all that Redis does when its clock jumps.
//!
//! Next: `deadlock`s, in `classroom::deadlocks`.

use super::forgetful_node::on_three;
use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, faults::Need, play::Play},
};

const NEEDS: &[Need] = &[Need::Orders, Need::Ways, Need::Nodes];

/// redis-3, counted from 0.
const JUMPS: usize = 2;

pub(super) const REPLAY: Replay = Replay {
    lesson: "003.redlock.clock",
    title: Bilingual {
        zh: "一个节点的时钟跳了",
        en: "The clock of one node jumps",
    },
    breaks: Bilingual {
        zh: "那个节点上 A 的锁提前到期",
        en: "A's lock ends early on that node",
    },
    cure: Bilingual {
        zh: "不靠时钟：行拒绝旧令牌",
        en: "no clock: the row refuses the older token",
    },
    runs: ["redis-redlock", "redis-fenced"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 2,
            ..Ends::NOTHING
        },
    ],
    needs: NEEDS,
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let mut a = if play.cured {
        play.step(
            "A 拿到锁和令牌，读库存",
            "A has the lock and a token, and reads",
        )
        .await?;
        play.side_at(Point::Read, 'A', 2, act, play.lease(30_000))
            .await?
    } else {
        on_three(play, act).await?
    };
    play.step(
        "节点的时钟往前跳：A 的锁提前到期",
        "a node's clock jumps forward: A's lock ends early there",
    )
    .await?;
    let jumps = if play.cured { 0 } else { JUMPS };
    play.sights.end_lease_on(jumps).await?;
    play.step("B 拿到锁，读", "B takes the lock, and reads")
        .await?;
    let mut b = play
        .side_at(Point::Read, 'B', 1, act, play.lease(30_000))
        .await?;
    play.step("B 写完", "B writes").await?;
    b.ends().await?;
    play.step("A 接着写", "A writes too").await?;
    a.ends().await.map(drop)
}
