//! [003] The holder's process stands still for longer than its ZooKeeper session, and then writes what it had worked out
//! before.
//!
//! 1. A has the lock: its ephemeral node is the first. It has read; its process is stopped (SIGSTOP).
//! 2. ZooKeeper hears no heartbeat, ends the session, and deletes the node. B takes the lock, reads and writes.
//! 3. A goes on, and writes over B.
//!
//! On its cure the token is the zxid at which the node was made (its czxid): the row has seen B's, and refuses A's.
//!
//! By the clock the session ends without heartbeats; if the pace forces it, the lab ends it, if it can.
//!
//! Next: `node_types.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["003.pause.zk"],
    title: Bilingual::of("持有者停得比会话还久", "A holder that is paused beyond its session"),
    breaks: Bilingual::of(
        "会话没了，临时节点没了，它自己不知道",
        "the session and its ephemeral node are gone, and it does not know",
    ),
    cure: Bilingual::of("czxid 当令牌，行拒绝旧的", "the czxid is the token, and the row refuses an old one"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 建了临时节点，拿到锁，读库存", "A makes its ephemeral node, has the lock, and reads"),
        A.stops_at(Point::Read),
        A.gets_paused(),
        say("A 停住了：没有心跳，会话过期，节点被删", "A is paused: no heartbeat, its session ends, and its node goes"),
        A.loses_session_and_lock(),
        say("B 拿到锁，读", "B takes the lock, and reads"),
        B.stops_at(Point::Read),
        say("B 写完，释放锁", "B writes, and releases"),
        B.finishes(),
    ],
    flaw: Variant {
        act: Act::Strategy("zk-lock"),
        steps: &[
            say("A 醒了，不知道节点已经没了，接着写", "A wakes, does not know that its node is gone, and writes"),
            A.gets_resumed(),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("zk-fenced"),
        steps: &[
            say(
                "A 醒了，带着旧令牌去写：行见过更新的令牌，拒绝它",
                "A wakes and writes with its old token: the row has a newer one, and refuses it",
            ),
            A.gets_resumed(),
            A.fails_fenced(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(2),
    },
};
