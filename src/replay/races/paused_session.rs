//! [003] The holder's process stands still for longer than its ZooKeeper session, and then writes what it had worked out
//! before.
//!
//! 1. A has the lock: its ephemeral node is the first. It has read; its process is stopped (SIGSTOP).
//! 2. ZooKeeper hears no heartbeat, ends the session, and deletes the node. B takes the lock, reads and writes.
//! 3. A goes on, and writes over B.
//!
//! On its cure the token is the zxid at which the node was made (its czxid): the row has seen B's, and refuses A's.
//!
//! At a slow pace the session ends by itself; else the lab ends it, where it can.
//!
//! Next: `node_types.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, faults::Need, play::Play},
};

const NEEDS: &[Need] = &[Need::Orders];

pub(super) const REPLAY: Replay = Replay {
    lesson: "003.pause.zk",
    title: Bilingual {
        zh: "持有者停得比会话还久",
        en: "A holder that is paused beyond its session",
    },
    breaks: Bilingual {
        zh: "会话没了，临时节点没了，它自己不知道",
        en: "the session and its ephemeral node are gone, and it does not know",
    },
    cure: Bilingual {
        zh: "czxid 当令牌，行拒绝旧的",
        en: "the czxid is the token, and the row refuses an old one",
    },
    runs: ["zk-lock", "zk-fenced"],
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
    play.step(
        "A 建了临时节点，拿到锁，读库存",
        "A makes its ephemeral node, has the lock, and reads",
    )
    .await?;
    let mut a = play
        .side_at(Point::Read, 'A', play.other(1), act, None)
        .await?;
    play.pause(&a).await?;
    play.step(
        "A 的进程停住了（SIGSTOP）：没有心跳，会话过期，节点被删",
        "A's process is stopped (SIGSTOP): no heartbeat, the session ends, and its node goes",
    )
    .await?;
    play.session_ends(&a).await?;
    play.step("B 拿到锁，读", "B takes the lock, and reads")
        .await?;
    let mut b = play
        .side_at(Point::Read, 'B', play.other(0), act, None)
        .await?;
    play.step("B 写完，放锁", "B writes, and releases").await?;
    b.ends().await?;
    play.step("A 醒了，接着写", "A wakes, and writes").await?;
    play.resume(&a).await?;
    a.ends().await.map(drop)
}
