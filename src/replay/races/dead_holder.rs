//! §2.1 → §2.2 The holder dies, and its key stays for ever.
//!
//! 1. A has the lock, and dies: for Redis and for all others it never goes on.
//! 2. B tries again and again, and gives up.
//!
//! On its cure the key has a lease, which ends: B gets in. What A has not written is not sold.
//!
//! Next: `late_delete.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.2"],
    title: Bilingual::of("持有者死了，谁也进不去", "The holder dies, and nobody gets in"),
    breaks: Bilingual::of("没人删的键永远在", "a key that nobody deletes stays for ever"),
    cure: Bilingual::of("加锁时就带上过期时间（2.2）", "the key is written with a lease (2.2)"),
    anomalies: &[Anomaly::Stuck],
    begin: &[
        say("A 拿到锁，读库存", "A has the lock, and reads the stock"),
        A.lease(3000).stops_at(Point::Read),
        say("A 死了：没有人会删它的锁", "A dies: nobody will delete its lock"),
        A.dies(),
    ],
    flaw: Variant {
        act: Act::Strategy("redis-setnx"),
        steps: &[
            say("B 等待", "B waits"),
            B.impatient().stops_at(Point::Refused),
            LeaseTimePasses,
            say("这个键没有过期时间：B 再等也没用", "the key has no lease: B waits for nothing"),
            B.times_out(),
            Note("B gives up"),
        ],
        expected: ExpectedResult::NOTHING.inside(1).noting("B gives up", "B 等不到，放弃了", "B gives up"),
    },
    cured: Variant {
        act: Act::Strategy("redis-setnx-ttl"),
        steps: &[
            say("B 等待", "B waits"),
            B.stops_at(Point::Refused),
            say("租约到期，锁自己没了", "the lease ends, and the lock is gone by itself"),
            LeaseEnds,
            say("B 进来了", "B gets in"),
            B.finishes(),
            Note("B gets in"),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1).noting("B gets in", "B 进去了", "B gets in"),
    },
};
