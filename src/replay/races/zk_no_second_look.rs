//! §3.4.2 as printed: who is notified does not look again.
//!
//! 1. A has the lock. B waits for A's node to go, and C for B's.
//! 2. B's client hangs up, and its node goes. C is notified, and gets in beside A.
//!
//! On its cure C looks again, and watches A's node.
//!
//! (Number 0 is used up before: it holds up nobody in the printed code. See `zk_number_zero.rs`.)
//!
//! Next: `zk_one_count.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["3.4.2.printed"],
    title: Bilingual::of("排队的人走了，后面的人插了进来", "One leaves the queue, and the next gets in"),
    breaks: Bilingual::of("await() 以后直接 return，不再看一次", "after await() it returns, without a second look"),
    cure: Bilingual::of("得到通知，再看一次自己是不是最小的", "notified, it looks again whether it is the lowest"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 买一件：用掉 0 号", "A buys a piece: number 0 is used up"),
        A.finishes(),
        say("A 再来，拿到锁，读库存", "A comes again, has the lock, and reads"),
        A.stops_at(Point::Read),
        say("B 排在 A 后面", "B stands behind A"),
        B.will_stop_at(Point::Read),
        QueueHas(1),
        say("C 排在 B 后面", "C stands behind B"),
        C.will_stop_at(Point::Read),
        QueueHas(2),
        say("B 的客户端断开，它的节点没了，C 得到通知", "B's client hangs up, its node goes, and C is notified"),
        B.hangs_up(),
    ],
    flaw: Variant {
        act: Act::Strategy("zk-lock-as-printed"),
        steps: &[
            say("C 不再看，直接进来：A 还在临界区", "C does not look again, and gets in: A is still inside"),
            C.stops_at(Point::Read),
            say("A 写 4998，C 也写 4998", "A writes 4998, and so does C"),
            A.finishes(),
            C.finishes(),
        ],
        expected: ExpectedResult::sold(3, 2).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("zk-lock"),
        steps: &[
            say("C 再比较一次：A 的节点更小，接着等", "C compares again: A's node is lower, and it waits on"),
            QueueHas(1),
            say("A 写完，释放锁", "A writes, and releases"),
            A.finishes(),
            say("C 才进来", "and then C gets in"),
            C.finishes(),
        ],
        expected: ExpectedResult::sold(3, 3).inside(1),
    },
};
