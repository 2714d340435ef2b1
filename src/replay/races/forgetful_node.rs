//! [003] A node of Redlock comes back without its data.
//!
//! 1. A does not reach two of the five nodes, and has the lock on the other three.
//! 2. One of these dies, and comes back empty. B gets that one and the two: most of five. Both are inside.
//!
//! On its cure the node stays away until what it knew has ended (a delayed restart): B gets two nodes, which is no lock, and C
//! gets in after A.
//!
//! Next: `jumping_clock.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["003.redlock.restart"],
    title: Bilingual::of("红锁的一个节点丢了数据重启", "A node of Redlock forgets"),
    breaks: Bilingual::of("重启的节点不记得 A 的锁", "the node that came back does not know A's lock"),
    cure: Bilingual::of("延迟重启：等旧锁都过期再回来", "a delayed restart: after what it knew has ended"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[All(A_LOCKS_THREE_NODES), say("redis-3 死了", "redis-3 dies"), Fault(Action::Kill, "redis-3")],
    flaw: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            say("马上重启：它什么也不记得", "it is started again at once, and knows nothing"),
            Fault(Action::Start, "redis-3"),
            say("B 拿到 redis-3 4 5：也是多数", "B gets redis-3, 4 and 5: most of five as well"),
            B.stops_at(Point::Read),
            say("A 写，B 也写", "A writes, and so does B"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            say("不急着重启：B 只拿到两个", "it is not started yet: B gets two"),
            B.impatient().fails(),
            Note("B refused"),
            say("A 写完，释放锁；redis-3 这时才回来", "A writes, and releases; now redis-3 comes back"),
            A.finishes(),
            Fault(Action::Start, "redis-3"),
            say("C 进来", "C gets in"),
            C.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1).noting("B refused", "B 被拒绝", "B is refused"),
    },
};

/// A has the lock on the first three nodes; its instance is cut off from the other two.
pub(super) const A_LOCKS_THREE_NODES: &[Step] = &[
    say("A 的网络不好：连不上 redis-4 和 redis-5", "A's network is bad: it does not reach redis-4 and redis-5"),
    A.loses_link_to("redis-4"),
    A.loses_link_to("redis-5"),
    say("A 在 redis 1 2 3 上拿到锁，读库存", "A has the lock on redis 1, 2 and 3, and reads"),
    A.stops_at(Point::Read),
];
