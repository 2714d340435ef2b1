//! §3.4.1 as printed: number 0 is nobody's predecessor.
//!
//! 1. A has node 0: the lock is its own. It reads.
//! 2. B has node 1. It looks for the greatest number below its own that is greater than 0, and finds none: it gets in.
//!
//! On its cure the lowest number has the lock, whatever it is.
//!
//! Next: `zk_no_second_look.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["3.4.1.printed"],
    title: Bilingual::of("0 号节点不会阻塞 1 号", "Node 0 does not hold up node 1"),
    breaks: Bilingual::of(
        "从 flag = 0 找更大的序号：0 号永远找不到",
        "it looks for a number above flag = 0, and never finds number 0",
    ),
    cure: Bilingual::of("序号最小的拿到锁", "the lowest number has the lock"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[say("A 的节点是 0 号：拿到锁，读库存", "A's node is number 0: it has the lock, and reads"), A.stops_at(Point::Read)],
    flaw: Variant {
        act: Act::Strategy("zk-sequential-as-printed"),
        steps: &[
            say(
                "B 的节点是 1 号：没找到前一个节点，也进来了",
                "B's node is number 1: it finds none before its own, and gets in too",
            ),
            B.stops_at(Point::Read),
            say("A 写 4999，B 也写 4999", "A writes 4999, and so does B"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("zk-sequential"),
        steps: &[
            say("B 的节点是 1 号：0 号更小，B 等", "B's node is number 1: number 0 is lower, and B waits"),
            B.will_stop_at(Point::Read),
            QueueHas(1),
            say("A 写 4999，删除节点", "A writes 4999, and deletes its node"),
            A.finishes(),
            say("B 才进来", "B gets in after it"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1),
    },
};
