//! §2.9 The main Redis fails before its replica has the key; the replica is promoted.
//!
//! 1. The replica hears of no write any more. A takes the lock on the main one, and reads.
//! 2. The Sentinel promotes the replica: it knows nothing of A's lock. B takes the lock there, and reads.
//! 3. Both write.
//!
//! On its cure, Redlock, five nodes that know nothing of each other have the lock. One of them was replaced, and B gets that
//! one alone: one of five is no lock. C gets in after A.
//!
//! It is the way between the two that is cut: to the Sentinel, which uses the same way, the main one is gone.
//!
//! Next: `dead_nodes.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    orders::Action,
    replay::{Ends, Replay, faults::Need, play::Play},
};
use std::time::Duration;

const NEEDS: &[Need] = &[Need::Orders, Need::Replica, Need::Nodes];

/// Longer than the Sentinel takes: 4 s without an answer, and then the promotion; one that was itself held up does nothing
/// for 3 s, and one that does not know its replica well tries again after 20.
const PROMOTION: Duration = Duration::from_secs(40);

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.9",
    title: Bilingual {
        zh: "主库挂了，从库还没有锁",
        en: "The main Redis fails before its replica has the lock",
    },
    breaks: Bilingual {
        zh: "复制是异步的：升上来的从库里没有这把锁",
        en: "replication is asynchronous: the promoted replica has no such lock",
    },
    cure: Bilingual {
        zh: "红锁：五个独立节点，多数同意才算",
        en: "Redlock: most of five independent nodes must agree",
    },
    runs: ["redis-lock", "redis-redlock"],
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
    // At the end the first one is the main one again.
    play.faults.at_the_end(Action::Promote, "redis");
    play.step(
        "主库和从库断开：从库收不到写",
        "the main one and its replica are cut off from each other",
    )
    .await?;
    play.faults.order(Action::Cut, "replica-redis").await?;
    play.step(
        "A 在主库拿到锁，读库存",
        "A takes the lock on the main one, and reads",
    )
    .await?;
    let mut a = play
        .side_at(Point::Read, 'A', 2, act, play.lease(30_000))
        .await?;
    play.step("哨兵把从库升为主库", "the Sentinel promotes the replica")
        .await?;
    play.main_forgets(PROMOTION).await?;
    if !play.cured {
        play.step(
            "新主库里没有 A 的锁：B 也拿到了",
            "the new main one knows nothing of A's lock: B has it too",
        )
        .await?;
        let mut b = play
            .side_at(Point::Read, 'B', 1, act, play.lease(30_000))
            .await?;
        play.step(
            "A 写，B 也写：卖了两件，只少一件",
            "A writes, and so does B: two are sold, one is gone",
        )
        .await?;
        a.ends().await?;
        return b.ends().await.map(drop);
    }
    play.step(
        "B 只拿到换掉的那一个：一个不是多数",
        "B gets the one that was replaced, and one is not most",
    )
    .await?;
    play.is_refused('B', 1, act).await?;
    play.step("A 写完，放锁", "A writes, and releases").await?;
    a.ends().await?;
    play.step("C 才进来", "and then C gets in").await?;
    play.side(&[], 'C', 0, act, play.lease(30_000))
        .await?
        .ends()
        .await
        .map(drop)
}
