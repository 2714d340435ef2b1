//! §3.3 → §3.4.2 The first to come gets in first, or the first to ask at the right moment.
//!
//! 1. A has the lock. B has asked, was refused, and sleeps until it asks again.
//! 2. A gives the lock back. C comes, asks, and gets in before B.
//!
//! On its cure each has a numbered node, and waits for the one before its own: A, B, C.
//!
//! Next: `zk_read_write.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["3.6"],
    title: Bilingual::of("先来的先进", "First come, first served"),
    breaks: Bilingual::of("大家反复抢：后来的可能先进", "all ask again and again: the last to come may get in first"),
    cure: Bilingual::of("顺序节点排队，只监听前一个", "a queue of numbered nodes, each watches the one before"),
    anomalies: &[Anomaly::Overtaken],
    begin: &[say("A 拿到锁", "A has the lock"), A.stops_at(Point::Read)],
    flaw: Variant {
        act: Act::Strategy("zk-ephemeral"),
        steps: &[
            say("B 来了，没拿到，睡一会儿再试", "B comes, is refused, and sleeps before it asks again"),
            B.stops_at(Point::Refused),
            say("A 释放锁，B 还在睡", "A releases, and B still sleeps"),
            A.finishes(),
            say("C 刚来，一试就进去了", "C has just come, asks, and gets in"),
            C.finishes(),
            say("然后才是 B", "and then B"),
            B.finishes(),
            NoteFrom(Play::acquisition_order),
        ],
        expected: ExpectedResult::sold(3, 3).inside(1).noting("A C B", "进去的顺序：A C B", "they got in in the order A C B"),
    },
    cured: Variant {
        act: Act::Strategy("zk-lock"),
        steps: &[
            say("B 来了：节点排在 A 后面，只监听 A 的节点", "B comes: its node is behind A's, which it watches"),
            B.will_stop_at(Point::Read),
            QueueHas(1),
            say("C 来了：排在 B 后面，只监听 B 的节点", "C comes: its node is behind B's, which it watches"),
            C.will_stop_at(Point::Read),
            QueueHas(2),
            say("A 释放锁，唤醒 B", "A releases, which wakes B"),
            A.finishes(),
            B.stops_at(Point::Read),
            say("B 释放锁，唤醒 C", "B releases, which wakes C"),
            B.finishes(),
            C.finishes(),
            NoteFrom(Play::acquisition_order),
        ],
        expected: ExpectedResult::sold(3, 3).inside(1).noting("A B C", "进去的顺序：A B C", "they got in in the order A B C"),
    },
};
