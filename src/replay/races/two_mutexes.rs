//! §1.5, §1.6 One process's mutex keeps its own requests apart, and nobody else's.
//!
//! 1. A has locked the mutex of its instance, and has read.
//! 2. B comes to another instance, which has a mutex of its own: B gets in too, and reads the same.
//! 3. Both write 4999: two are sold, one is gone.
//!
//! On its cure both come to one instance: B waits for the one mutex. That is no cure for three instances: `row_lock.rs` is.
//!
//! What it survives: any number of requests to one instance. **What breaks it**: the second instance.
//!
//! Next: `row_lock.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["1.6", "004.jvm"],
    title: Bilingual::of("两个实例，两把锁", "Two instances, two mutexes"),
    breaks: Bilingual::of("锁在进程里，另一个实例有它自己的锁", "the mutex is the process's, and another has its own"),
    cure: Bilingual::of("都到一个实例：一把锁（1.5）", "both come to one instance: one mutex (1.5)"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[say("A 拿到这个实例的锁，读库存", "A locks the mutex of its instance, and reads"), A.stops_at(Point::Read)],
    flaw: Variant {
        act: Act::Strategy("mutex"),
        steps: &[
            say("B 来到另一个实例：那里的锁没人占", "B comes to another one: nobody has the mutex there"),
            B.stops_at(Point::Read),
            say("A 写回 4999", "A writes 4999"),
            A.finishes(),
            say("B 也写回 4999：卖了两件，库存只减一件", "B writes 4999 too: two are sold, one is gone"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("mutex"),
        steps: &[
            say("B 来到同一个实例：锁被占着，等", "B comes to the same one: the mutex is taken, and B waits"),
            B.on_instance_of(A).waits(),
            say("A 写完", "A writes"),
            A.stops_at(Point::Written),
            say("A 释放锁，B 才进来", "A unlocks, and B gets in after it"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1),
    },
};
