//! §2.10.4 How many of Redlock's nodes may be dead?
//!
//! 1. Three of five are dead: two are left, no majority. A does not get in.
//!
//! Where two are dead, three are left: A gets in, sells, and releases.
//!
//! Next: `node_types.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.9.nodes", "2.10.4"],
    title: Bilingual::of("红锁的节点死了几个", "How many of Redlock's nodes are dead"),
    breaks: Bilingual::of("五个死三个：凑不成多数，谁也拿不到", "three of five: no majority, and nobody gets in"),
    cure: Bilingual::of("只死两个：三个就够", "only two: three are enough"),
    anomalies: &[Anomaly::Unavailable],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            say("杀掉 redis-5 redis-4 redis-3", "redis-5 redis-4 redis-3 are killed"),
            Fault(Action::Kill, "redis-5"),
            Fault(Action::Kill, "redis-4"),
            Fault(Action::Kill, "redis-3"),
            say("A 只问得到两个：拿不到", "only two answer A: it does not get in"),
            A.impatient().fails(),
            Note("A refused"),
        ],
        expected: ExpectedResult::NOTHING.noting("A refused", "A 被拒绝", "A is refused"),
    },
    cured: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            say("杀掉 redis-5 redis-4", "redis-5 redis-4 are killed"),
            Fault(Action::Kill, "redis-5"),
            Fault(Action::Kill, "redis-4"),
            say("A 在剩下的三个上拿到锁", "A has the lock on the three that are left"),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1),
    },
};
