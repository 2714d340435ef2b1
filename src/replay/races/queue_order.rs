//! §2.10.2 The longest waiter comes next, or the one that tries at the right moment.
//!
//! 1. A has the lock. B waits: it tries again every now and then.
//! 2. A releases while B is between two tries. C comes only now, tries at once, and gets in.
//! 3. B, who has waited longer, comes last: A, C, B.
//!
//! On its cure waiters stand in a queue in Redis, a later one behind an earlier one: A, B, C.
//!
//! Next: `read_write.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.10.2"],
    title: Bilingual::of("后来的先进去", "The one that comes later gets in first"),
    breaks: Bilingual::of("不公平：碰巧在释放锁后第一个来试的人进去", "not fair: the first to try after a release gets in"),
    cure: Bilingual::of("公平锁：在 Redis 里排队", "the fair lock: a queue in Redis"),
    anomalies: &[Anomaly::Overtaken],
    begin: &[say("A 拿到锁", "A has the lock"), A.stops_at(Point::Read)],
    flaw: Variant {
        act: Act::Strategy("redis-watchdog"),
        steps: &[
            say("B 等待：试一次，歇一会儿", "B waits: it tries, and rests"),
            B.stops_at(Point::Refused),
            say("B 还在歇，A 释放锁了", "B is at rest, and A releases"),
            A.finishes(),
            say("C 这时才来，一试就拿到", "C comes only now, and has it at once"),
            C.finishes(),
            say("等得更久的 B 最后才进去", "B, who has waited longer, comes last"),
            B.finishes(),
            NoteFrom(Play::acquisition_order),
        ],
        expected: ExpectedResult::sold(3, 3).inside(1).noting("A C B", "进去的顺序：A C B", "they got in in the order A C B"),
    },
    cured: Variant {
        act: Act::Strategy("redis-fair"),
        steps: &[
            say("B 来排队", "B queues"),
            B.will_stop_at(Point::Read),
            QueueHas(1),
            say("C 来排队，站在 B 后面", "C queues, behind B"),
            C.will_stop_at(Point::Read),
            QueueHas(2),
            say("A 释放锁：唤醒的只是排在最前的 B", "A releases: only B, the first, is woken"),
            A.finishes(),
            B.stops_at(Point::Read),
            say("B 释放锁，轮到 C", "B releases, and it is C's turn"),
            B.finishes(),
            C.finishes(),
            NoteFrom(Play::acquisition_order),
        ],
        expected: ExpectedResult::sold(3, 3).inside(1).noting("A B C", "进去的顺序：A B C", "they got in in the order A B C"),
    },
};
