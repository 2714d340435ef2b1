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

use super::*;
use crate::replay::{inject::UNPLANNED_FAILOVER_TIMEOUT, play::poll_until};

pub(super) const RACE: Race = Race {
    lessons: &["2.8", "2.9", "003.master"],
    title: Bilingual::of("主节点挂了，从节点还没有锁", "The main Redis fails before its replica has the lock"),
    breaks: Bilingual::of(
        "复制是异步的：升上来的从节点里没有这把锁",
        "replication is asynchronous: the promoted replica has no such lock",
    ),
    cure: Bilingual::of("红锁：五个独立节点，多数同意才算", "Redlock: most of five independent nodes must agree"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        // The first Redis is the main one again at the end.
        FaultAtEnd(Action::Promote, "redis"),
        say("主节点和从节点断开：从节点收不到写", "the main one and its replica are cut off from each other"),
        Fault(Action::Cut, "replica-redis"),
        say("A 在主节点拿到锁，读库存", "A takes the lock on the main one, and reads"),
        A.stops_at(Point::Read),
        say("Sentinel 把从节点升为主节点", "the Sentinel promotes the replica"),
        Custom(|play| Box::pin(wait_until_main_forgot(play))),
    ],
    flaw: Variant {
        act: Act::Strategy("redis-lock"),
        steps: &[
            say("新主节点里没有 A 的锁：B 也拿到了", "the new main one knows nothing of A's lock: B has it too"),
            B.stops_at(Point::Read),
            say("A 写，B 也写：卖了两件，只少一件", "A writes, and so does B: two are sold, one is gone"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            say("B 只拿到换掉的那一个：一个不是多数", "B gets the one that was replaced, and one is not most"),
            B.impatient().fails(),
            Note("B refused"),
            say("A 写完，释放锁", "A writes, and releases"),
            A.finishes(),
            say("C 才进来", "and then C gets in"),
            C.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1).noting("B refused", "B 被拒绝", "B is refused"),
    },
};

/// Waits until the promoted Redis, which does not have the lock, is the main one for every instance; fails after
/// [`UNPLANNED_FAILOVER_TIMEOUT`].
async fn wait_until_main_forgot(play: &Play) -> Result<(), Error> {
    poll_until(UNPLANNED_FAILOVER_TIMEOUT, "the main Redis was not replaced", || async {
        Ok(play.reader.is_free_on_node(0).await.unwrap_or(false))
    })
    .await?;
    play.wait_until_all_reach_redis().await
}
